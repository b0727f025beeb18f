// The writing half of safetensors.h. The header has the layout the reference implementation produces (entries in the
// order of their data, padded with blanks to eight bytes), so that a file read and written again is the same file.
#include "convert/safetensors.h"

#include "base/atomic_file.h"
#include "base/error.h"
#include "base/json.h"
#include "text/utf8.h"

#include <set>

namespace penelope {

struct SafetensorsWriter::Impl {
    Impl(const std::string & path, bool force) : file(path, force) {}

    AtomicFile            file;
    OrderedJson           metadata = OrderedJson::object();
    OrderedJson           entries  = OrderedJson::object();
    std::set<std::string> names;
    uint64_t              declared = 0;
    uint64_t              written  = 0;
    bool                  started  = false;

    void require_text(const std::string & text) const {
        if (valid_utf8_prefix(text) != text.size()) {
            throw Error(ErrorKind::format, file.path() + ": a name is not valid UTF-8");
        }
    }
};

SafetensorsWriter::SafetensorsWriter(const std::string & path, bool force)
    : impl_(std::make_unique<Impl>(path, force)) {}
SafetensorsWriter::~SafetensorsWriter() = default;

void SafetensorsWriter::set_metadata(const std::string & key, const std::string & value) {
    impl_->require_text(key);
    impl_->require_text(value);
    impl_->metadata[key] = value;
}

void SafetensorsWriter::add_tensor(const std::string & name, SafetensorsType type, const std::vector<int64_t> & shape) {
    if (impl_->started || name == "__metadata__" || !impl_->names.insert(name).second) {
        throw Error(ErrorKind::format, impl_->file.path() + ": tensor '" + name + "' cannot be added");
    }
    impl_->require_text(name);
    uint64_t bytes = safetensors_type_size(type);
    for (const int64_t extent : shape) {
        bytes *= uint64_t(extent);
    }
    OrderedJson entry;
    entry["dtype"]        = safetensors_type_name(type);
    entry["shape"]        = shape;
    entry["data_offsets"] = { impl_->declared, impl_->declared + bytes };
    impl_->entries.emplace(name, std::move(entry));
    impl_->declared += bytes;
}

void SafetensorsWriter::begin_data() {
    OrderedJson header = OrderedJson::object();
    if (!impl_->metadata.empty()) {
        header["__metadata__"] = impl_->metadata;
    }
    header.update(impl_->entries);
    std::string text = dump_json(header);
    text.append((8 - text.size() % 8) % 8, ' ');

    uint8_t length[8];
    for (int i = 0; i < 8; i++) {
        length[i] = uint8_t(uint64_t(text.size()) >> (8 * i));
    }
    impl_->started = true;
    impl_->file.require_space(sizeof length + text.size() + impl_->declared);
    impl_->file.write(length, sizeof length);
    impl_->file.write(text);
}

void SafetensorsWriter::write(const void * data, size_t size) {
    if (!impl_->started || size > impl_->declared - impl_->written) {
        throw Error(ErrorKind::format, impl_->file.path() + ": more data than announced");
    }
    impl_->file.write(data, size);
    impl_->written += size;
}

void SafetensorsWriter::finish() {
    if (!impl_->started || impl_->written != impl_->declared) {
        throw Error(ErrorKind::format, impl_->file.path() + ": less data than announced");
    }
    impl_->file.sync();
    SafetensorsReader::open(impl_->file.temp_path());
    impl_->file.commit();
}

} // namespace penelope
