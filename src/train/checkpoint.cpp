#include "train/checkpoint.h"

#include "base/error.h"
#include "base/json.h"
#include "gguf/keys.h"
#include "gguf/reader.h"
#include "gguf/writer.h"
#include "model/lora.h"

#include <filesystem>

namespace penelope {

namespace fs = std::filesystem;

namespace {

constexpr const char * kFileType    = "penelope-checkpoint";
constexpr const char * kStateKey    = "penelope.checkpoint.state";    // str, JSON
constexpr const char * kSettingsKey = "penelope.checkpoint.settings"; // str, JSON

using Part = Optimizer::Part;

std::vector<std::pair<Part, const char *>> parts_of(CheckpointParts parts) {
    std::vector<std::pair<Part, const char *>> list{ { Part::weights, ".weights" } };
    if (parts == CheckpointParts::weights_and_moments) {
        list.push_back({ Part::first_moments, ".first_moments" });
        list.push_back({ Part::second_moments, ".second_moments" });
    }
    return list;
}

} // namespace

void save_checkpoint(const std::string & path, const RunState & state, const Optimizer & optimizer,
                     CheckpointParts parts) {
    const OrderedJson counts{
        { "update", state.update },
        { "scored", state.scored },
        { "optimizer_steps", optimizer.n_steps() },
        { "best", { { "update", state.best.update }, { "exact", state.best.exact }, { "loss", state.best.loss } } },
        { "seconds", state.seconds },
    };
    GgufWriter writer(path, true);
    writer.set_str(keys::general_type, kFileType);
    writer.set_str(kStateKey, dump_json(counts));
    writer.set_str(kSettingsKey, state.settings);
    for (int group = 0; group < optimizer.n_groups(); group++) {
        for (const auto & [part, suffix] : parts_of(parts)) {
            writer.add_tensor(optimizer.group_name(group) + suffix, GGML_TYPE_F32, { optimizer.n_flat(group) });
        }
    }
    writer.begin_data();
    for (int group = 0; group < optimizer.n_groups(); group++) {
        for (const auto & [part, suffix] : parts_of(parts)) {
            const std::vector<float> values = optimizer.read(group, part);
            writer.write_tensor(optimizer.group_name(group) + suffix, values.data(), values.size() * sizeof(float));
        }
    }
    writer.finish();
}

RunState load_checkpoint(const std::string & path, Optimizer & optimizer, CheckpointParts parts) {
    const GgufReader file = GgufReader::open(path);
    if (file.find_str(keys::general_type).value_or("") != kFileType) {
        throw Error(ErrorKind::format, path + ": is not a checkpoint");
    }
    const Json counts = parse_json(file.get_str(kStateKey), path);
    const Json best   = counts.value("best", Json::object());
    RunState   state;
    state.update      = json_get<int64_t>(counts, "update", path);
    state.scored      = json_get<int64_t>(counts, "scored", path);
    state.seconds     = json_get<double>(counts, "seconds", path);
    state.best.update = json_get<int64_t>(best, "update", path);
    state.best.exact  = json_get<double>(best, "exact", path);
    state.best.loss   = json_get<double>(best, "loss", path);
    state.settings    = file.get_str(kSettingsKey);
    for (int group = 0; group < optimizer.n_groups(); group++) {
        for (const auto & [part, suffix] : parts_of(parts)) {
            const GgufTensor & tensor =
                file.get_tensor(optimizer.group_name(group) + suffix, { optimizer.n_flat(group) });
            optimizer.write(group, part, read_f32(file, tensor));
        }
    }
    optimizer.set_n_steps(json_get<int64_t>(counts, "optimizer_steps", path));
    return state;
}

void remove_leftovers(const std::string & dir) {
    std::error_code ec;
    for (const fs::directory_entry & entry : fs::directory_iterator(dir, ec)) {
        const std::string name = entry.path().filename().string();
        if (name.compare(0, 10, ".penelope-") == 0 && entry.path().extension() == ".tmp") {
            fs::remove(entry.path(), ec);
        }
    }
}

} // namespace penelope
