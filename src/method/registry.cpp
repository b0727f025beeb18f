#include "method/registry.h"

#include "base/error.h"
#include "base/format.h"
#include "method/coconut.h"
#include "method/penelope.h"
#include "method/plain.h"

namespace penelope {

namespace {

std::unique_ptr<Method> make_plain(const MethodParts &) {
    return std::make_unique<PlainMethod>();
}

std::unique_ptr<Method> make_cot(const MethodParts &) {
    return std::make_unique<CotMethod>();
}

std::unique_ptr<Method> make_penelope(const MethodParts & parts) {
    const PenelopeModules modules = assemble_modules(parts.nodes);
    const LatentShape     shape   = latent_shape(parts.config);
    return std::make_unique<PenelopeMethod>(
        modules, shape, make_time_tables(modules, shape, parts.device, parts.tables), int(parts.config.k_default));
}

std::unique_ptr<Method> make_coconut(const MethodParts & parts) {
    return std::make_unique<CoconutMethod>(parts.nodes.at("coconut.token.rows"), int(parts.config.k_max),
                                           int(parts.config.k_default));
}

} // namespace

const std::vector<MethodEntry> & method_table() {
    static const std::vector<MethodEntry> table{
        { "plain", true, false, make_plain },
        { "cot", true, true, make_cot },
        { "penelope", false, true, make_penelope },
        { "coconut", false, true, make_coconut },
    };
    return table;
}

const MethodEntry * find_method(const std::string & name) {
    for (const MethodEntry & entry : method_table()) {
        if (name == entry.name) {
            return &entry;
        }
    }
    return nullptr;
}

const MethodEntry & get_method(const std::string & name) {
    if (const MethodEntry * entry = find_method(name)) {
        return *entry;
    }
    std::vector<std::string> names;
    for (const MethodEntry & entry : method_table()) {
        names.emplace_back(entry.name);
    }
    throw Error(ErrorKind::usage, "method " + in_quotes(name) + ": not known", "known are " + join(names, ", "));
}

bool is_visible_method(const std::string & name) {
    const MethodEntry * entry = find_method(name);
    return entry && entry->is_visible;
}

} // namespace penelope
