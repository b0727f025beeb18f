// The list of architectures, from list.inc.
#include "arch/architecture.h"
#include "base/error.h"
#include "gguf/keys.h"
#include "gguf/reader.h"

namespace penelope {

#define ARCHITECTURE(name) const Architecture & name##_architecture();
#include "arch/list.inc"
#undef ARCHITECTURE

const std::vector<const Architecture *> & architectures() {
    static const std::vector<const Architecture *> all = {
#define ARCHITECTURE(name) &name##_architecture(),
#include "arch/list.inc"
#undef ARCHITECTURE
    };
    return all;
}

std::string architecture_names() {
    std::string names;
    for (const Architecture * one : architectures()) {
        names += (names.empty() ? "" : ", ") + std::string(one->name);
    }
    return names;
}

const Architecture * find_architecture(const std::string & name) {
    for (const Architecture * one : architectures()) {
        if (name == one->name) {
            return one;
        }
    }
    return nullptr;
}

const Architecture * find_architecture_of_hf(const std::string & model_type) {
    for (const Architecture * one : architectures()) {
        for (const char * type : one->hf_types) {
            if (model_type == type) {
                return one;
            }
        }
    }
    return nullptr;
}

const Architecture & get_architecture(const GgufReader & file) {
    const std::string name = file.get_str(keys::general_architecture);
    if (const Architecture * found = find_architecture(name)) {
        return *found;
    }
    throw Error(ErrorKind::unsupported,
                file.path() + ": general.architecture is '" + name + "', which is not supported",
                "supported architectures: " + architecture_names());
}

const Architecture & get_architecture(const ModelConfig & config) {
    if (const Architecture * found = find_architecture(config.architecture)) {
        return *found;
    }
    throw Error(ErrorKind::unsupported, "architecture '" + config.architecture + "': not supported",
                "supported architectures: " + architecture_names());
}

} // namespace penelope
