#include "sidecar/method_format.h"

#include <algorithm>
#include <set>

namespace penelope {

const std::vector<const MethodFormat *> & method_formats() {
    static const std::vector<const MethodFormat *> all{ &penelope_format, &coconut_format, &codi_format };
    return all;
}

std::vector<std::string> method_format_names() {
    std::vector<std::string> names;
    for (const MethodFormat * format : method_formats()) {
        names.emplace_back(format->name);
    }
    return names;
}

const MethodFormat * find_method_format(const std::string & name) {
    for (const MethodFormat * format : method_formats()) {
        if (name == format->name) {
            return format;
        }
    }
    return nullptr;
}

bool has_flag(const MethodFormat * format, const std::string & flag) {
    return format && std::any_of(format->fields.begin(), format->fields.end(),
                                 [&](const MethodField & field) { return field.flag && flag == field.flag; });
}

std::vector<const MethodField *> flagged_fields() {
    std::vector<const MethodField *> all;
    std::set<std::string>            seen;
    for (const MethodFormat * format : method_formats()) {
        for (const MethodField & field : format->fields) {
            if (field.flag && seen.insert(field.flag).second) {
                all.push_back(&field);
            }
        }
    }
    return all;
}

} // namespace penelope
