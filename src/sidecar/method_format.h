// What a method keeps in its files, one entry per method that brings modules. Reader and writer of sidecars, converter,
// exporter and trainer walk this table, so that a further method is one more file beside format_penelope.cpp.
#pragma once

#include "sidecar/sidecar.h"

namespace penelope {

// A value of SidecarConfig: its names, and where it stands. Exactly one of `number` and `text` is set.
struct MethodField {
    const char * name; // in penelope_config.json
    const char * flag; // of penelope train; null: none
    const char * key;  // in a GGUF file
    uint32_t SidecarConfig::*number         = nullptr;
    std::string SidecarConfig::*text        = nullptr;
    bool                        may_be_zero = false;
    // A range [number, end) has a second key; it is a pair in JSON and S:E on the command line.
    const char * end_key         = nullptr;
    uint32_t SidecarConfig::*end = nullptr;
};

struct MethodFormat {
    const char *             name;
    std::vector<MethodField> fields;

    // Every module tensor at model width d; the names start with the method's own and a dot.
    std::vector<TensorShape> (*tensors)(const SidecarConfig & config, int64_t d);
    // Throws Error(format) for what goes beyond sizes that are positive.
    void (*check)(const SidecarConfig & config, const std::string & origin);
    // Sequential, before the answer, when the prompt fits one batch.
    int (*layer_applications)(const SidecarConfig & config, int n_steps);
    // For people: a label and a line on the shape of the modules.
    std::pair<std::string, std::string> (*summary)(const SidecarConfig & config);
};

extern const MethodFormat penelope_format, coconut_format, codi_format;

const std::vector<const MethodFormat *> & method_formats();
std::vector<std::string>                  method_format_names();
const MethodFormat *                      find_method_format(const std::string & name); // null: no such method

// Every field that a flag sets, of all methods, once each.
std::vector<const MethodField *> flagged_fields();
bool                             has_flag(const MethodFormat * format, const std::string & flag); // null has none

} // namespace penelope
