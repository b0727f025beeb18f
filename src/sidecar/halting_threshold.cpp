#include "sidecar/halting_threshold.h"

#include "gguf/keys.h"
#include "gguf/reader.h"
#include "gguf/writer.h"
#include "sidecar/sidecar.h"

namespace penelope {

void write_halt_cosine(const std::string & path, float halt_cosine, const std::string & out, bool force) {
    const GgufReader file   = GgufReader::open(path);
    SidecarConfig    config = read_sidecar_config(file);
    config.halt_cosine      = halt_cosine;
    check_sidecar_config(config, path);
    GgufWriter writer(out, force);
    writer.copy_keys(file);
    writer.set_f32(keys::penelope_settled, halt_cosine);
    for (const GgufTensor & tensor : file.tensors()) {
        writer.add_tensor(tensor.name, tensor.type, std::vector<int64_t>(tensor.ne, tensor.ne + tensor.n_dims));
    }
    writer.begin_data();
    for (const GgufTensor & tensor : file.tensors()) {
        writer.write_tensor(tensor.name, tensor.data, tensor.size);
    }
    writer.finish();
}

} // namespace penelope
