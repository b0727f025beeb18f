#include "method/registry.h"

#include "base/error.h"
#include "base/format.h"
#include "method/penelope.h"
#include "method/plain.h"
#include "method/thoughts.h"
#include "text/tokenizer.h"

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
    return std::make_unique<ThoughtMethod>("coconut", coconut_modules(parts.nodes), int(parts.config.k_max),
                                           int(parts.config.k_default));
}

// The answer's prefix is given up to the space before the answer, which many vocabularies join to what follows.
std::unique_ptr<Method> make_codi(const MethodParts & parts) {
    std::string prefix = parts.config.answer_prefix;
    prefix.erase(prefix.find_last_not_of(' ') + 1);
    return std::make_unique<ThoughtMethod>("codi", codi_modules(parts.nodes), int(parts.config.k_max),
                                           int(parts.config.k_default), parts.tokenizer.encode(prefix));
}

} // namespace

const std::vector<MethodEntry> & method_table() {
    constexpr bool visible = true, latent = false;
    constexpr bool alone = false, with_sidecar = true;

    static const std::vector<MethodEntry> table{
        { "plain", visible, alone, make_plain },
        { "cot", visible, with_sidecar, make_cot },
        { "penelope", latent, with_sidecar, make_penelope },
        { "coconut", latent, with_sidecar, make_coconut },
        { "codi", latent, with_sidecar, make_codi },
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
