#include "train/checkpoint.h"

#include "base/error.h"
#include "base/json.h"
#include "base/sha256.h"
#include "gguf/keys.h"
#include "gguf/reader.h"
#include "gguf/writer.h"
#include "model/lora.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace penelope {

namespace {

constexpr const char * kFileType = "penelope-checkpoint";

constexpr const char * kSumsTensor = "checkpoint.sha256"; // [64, 1 + buffers], a row of hexadecimal digits each
constexpr size_t       kSumLength  = 64;

using BufferKind = Optimizer::BufferKind;

// A flat buffer of the optimizer and its name in the file.
struct Buffer {
    int         group;
    BufferKind  part;
    std::string name;
};

std::vector<Buffer> buffers_of(const Optimizer & optimizer, CheckpointContents parts) {
    std::vector<Buffer> list;
    for (int group = 0; group < optimizer.n_groups(); group++) {
        const std::string name = optimizer.group_name(group);
        list.push_back({ group, BufferKind::weights, name + ".weights" });
        if (parts == CheckpointContents::weights_and_moments) {
            list.push_back({ group, BufferKind::first_moments, name + ".first_moments" });
            list.push_back({ group, BufferKind::second_moments, name + ".second_moments" });
        }
    }
    return list;
}

std::string_view bytes_of(const void * data, size_t size) {
    return { static_cast<const char *>(data), size };
}

std::string sum_of_texts(const std::string & counts, const std::string & settings) {
    return sha256_hex(counts + '\n' + settings);
}

// Reads the whole file once, because a bad sector is an error here and would be SIGBUS under the mapping. Throws
// Error(format) with the offset of the first unreadable byte. If the file cannot be opened, GgufReader reports it.
void check_readable(const std::string & path) {
    const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) {
        return;
    }
    std::vector<char> buffer(1 << 20);
    uint64_t          n_read = 0;
    int               code   = 0;
    while (code == 0 || code == EINTR) {
        const ssize_t n = ::read(fd, buffer.data(), buffer.size());
        if (n == 0) {
            break;
        }
        code = n < 0 ? errno : 0;
        n_read += n > 0 ? static_cast<uint64_t>(n) : 0;
    }
    ::close(fd);
    if (code == EIO) {
        throw Error(ErrorKind::format,
                    path + ": read failed after " + std::to_string(n_read) + " bytes: " + std::strerror(code));
    }
}

GgufReader open_checkpoint(const std::string & path) {
    check_readable(path);
    GgufReader file = GgufReader::open(path);
    if (file.find_str(keys::general_type).value_or("") != kFileType) {
        throw Error(ErrorKind::format, path + ": is not a checkpoint");
    }
    return file;
}

const GgufTensor & sums_of(const GgufReader & file) {
    const GgufTensor * sums = file.find_tensor(kSumsTensor);
    if (!sums || sums->type != GGML_TYPE_I8 || sums->ne[0] != int64_t(kSumLength)) {
        throw Error(ErrorKind::format, file.path() + ": no checksums: not a checkpoint of this version");
    }
    return *sums;
}

// Rows of the checksum tensor: row 0 is the checksum of the JSON texts, then one row per buffer.
void check_sum(const GgufReader & file, const GgufTensor & sums, size_t row, const std::string & found,
               const std::string & what) {
    if (std::memcmp(static_cast<const char *>(sums.data) + row * kSumLength, found.data(), kSumLength) != 0) {
        throw Error(ErrorKind::format, file.path() + ": " + what + ": checksum mismatch, the file is damaged");
    }
}

OrderedJson depths_json(const std::vector<DepthRecord> & depths) {
    OrderedJson all = OrderedJson::array();
    for (const DepthRecord & depth : depths) {
        all.push_back({ depth.accuracy, depth.n_drawn });
    }
    return all;
}

std::vector<DepthRecord> parse_depths(const Json & counts, const std::string & path) {
    std::vector<DepthRecord> depths;
    const auto               found = counts.find("depths");
    if (found == counts.end()) {
        return depths;
    }
    for (const Json & depth : *found) {
        if (!depth.is_array() || depth.size() != 2 || !depth[0].is_number() || !depth[1].is_number_integer() ||
            depth[1].get<int64_t>() < 0) {
            throw Error(ErrorKind::format, path + ": run state: \"depths\" has an entry that is not [accuracy, count]");
        }
        depths.push_back({ depth[0].get<double>(), depth[1].get<int64_t>() });
    }
    return depths;
}

// Checks only what holds for every run; the trainer checks the state against the settings.
RunState parse_state(const std::string & text, const std::string & path) {
    const Json counts = parse_json(text, path);
    if (!counts.is_object() || !counts.contains("best") || !counts["best"].is_object()) {
        throw Error(ErrorKind::format, path + ": run state: missing object \"best\"");
    }
    if (!counts.contains("stage") || !counts["stage"].is_object()) {
        throw Error(ErrorKind::format, path + ": run state: missing object \"stage\"",
                    "checkpoints of other versions cannot be resumed");
    }
    const Json & best     = counts["best"];
    const Json & progress = counts["stage"];
    RunState     state;
    state.update                = json_get<int64_t>(counts, "update", path);
    state.validated             = json_get<int64_t>(counts, "validated", path);
    state.optimizer_steps       = json_get<int64_t>(counts, "optimizer_steps", path);
    state.seconds               = json_get<double>(counts, "seconds", path);
    state.progress.stage        = json_get<int64_t>(progress, "number", path);
    state.progress.start_update = json_get<int64_t>(progress, "since", path);
    state.progress.loss         = json_get<double>(progress, "loss", path);
    state.best.update           = json_get<int64_t>(best, "update", path);
    state.best.exact            = json_get<double>(best, "exact", path);
    state.best.loss             = json_get<double>(best, "loss", path);
    state.depths                = parse_depths(counts, path);
    const auto within           = [&](const char * name, int64_t value) {
        if (value < 0 || value > state.update) {
            throw Error(ErrorKind::format, path + ": " + name + " is " + std::to_string(value) + ", expected 0 to " +
                                                         std::to_string(state.update));
        }
    };
    within("update", state.update);
    within("validated", state.validated);
    within("optimizer_steps", state.optimizer_steps);
    within("best.update", state.best.update);
    within("stage.number", state.progress.stage);
    within("stage.since", state.progress.start_update);
    return state;
}

RunState read_state(const GgufReader & file) {
    const std::string counts   = file.get_str(keys::checkpoint_state);
    const std::string settings = file.get_str(keys::checkpoint_settings);
    check_sum(file, sums_of(file), 0, sum_of_texts(counts, settings), "run state");
    RunState state = parse_state(counts, file.path());
    state.settings = settings;
    return state;
}

} // namespace

void save_checkpoint(const std::string & path, const RunState & state, const Optimizer & optimizer,
                     CheckpointContents parts, const std::function<void()> & before_replacing) {
    OrderedJson all{
        { "update", state.update },
        { "validated", state.validated },
        { "optimizer_steps", optimizer.step_count() },
        { "stage",
          { { "number", state.progress.stage },
            { "since", state.progress.start_update },
            { "loss", state.progress.loss } } },
        { "best", { { "update", state.best.update }, { "exact", state.best.exact }, { "loss", state.best.loss } } },
        { "seconds", state.seconds },
    };
    if (!state.depths.empty()) {
        all["depths"] = depths_json(state.depths);
    }
    const std::string         counts  = dump_json(all);
    const std::vector<Buffer> buffers = buffers_of(optimizer, parts);
    GgufWriter                writer(path, true);
    writer.set_str(keys::general_type, kFileType);
    writer.set_str(keys::checkpoint_state, counts);
    writer.set_str(keys::checkpoint_settings, state.settings);
    for (const Buffer & buffer : buffers) {
        writer.add_tensor(buffer.name, GGML_TYPE_F32, { optimizer.n_flat(buffer.group) });
    }
    // Last in the file, because the checksums are known after the buffers were written.
    writer.add_tensor(kSumsTensor, GGML_TYPE_I8, { int64_t(kSumLength), int64_t(buffers.size() + 1) });
    writer.begin_data();
    std::string sums = sum_of_texts(counts, state.settings);
    for (const Buffer & buffer : buffers) {
        const std::vector<float> values = optimizer.read(buffer.group, buffer.part);
        const size_t             size   = values.size() * sizeof(float);
        writer.write_tensor(buffer.name, values.data(), size);
        sums += sha256_hex(bytes_of(values.data(), size));
    }
    writer.write_tensor(kSumsTensor, sums.data(), sums.size());
    writer.finish([&](const std::string &) { before_replacing(); });
}

RunState load_checkpoint(const std::string & path, Optimizer & optimizer, CheckpointContents parts,
                         const std::function<void(const RunState & state)> & accept) {
    const GgufReader file  = open_checkpoint(path);
    const RunState   state = read_state(file);
    accept(state);
    const std::vector<Buffer> buffers = buffers_of(optimizer, parts);
    for (const Buffer & buffer : buffers) {
        file.get_tensor(buffer.name, { optimizer.n_flat(buffer.group) });
    }
    file.get_tensor(kSumsTensor, { int64_t(kSumLength), int64_t(buffers.size() + 1) });
    const GgufTensor & sums = sums_of(file);
    for (size_t i = 0; i < buffers.size(); i++) {
        const GgufTensor & tensor = *file.find_tensor(buffers[i].name);
        check_sum(file, sums, i + 1, sha256_hex(bytes_of(tensor.data, tensor.size)), "tensor " + tensor.name);
    }
    // Write to the optimizer only after all checks.
    for (const Buffer & buffer : buffers) {
        optimizer.write(buffer.group, buffer.part, read_f32(file, *file.find_tensor(buffer.name)));
    }
    optimizer.set_step_count(state.optimizer_steps);
    return state;
}

} // namespace penelope
