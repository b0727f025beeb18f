#include "latent/method_format.h"

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

} // namespace penelope
