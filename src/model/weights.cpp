#include "model/weights.h"

#include "base/error.h"
#include "base/memory.h"
#include "graph/packed_product.h"

#include <cstring>
#include <map>

namespace penelope {

namespace {

// Where the data of a tensor comes from.
struct Source {
    Node                              node;
    std::shared_ptr<const GgufReader> file;   // null: host
    const GgufTensor *                tensor; // in `file`
    std::vector<uint8_t>              host;   // also empty: the caller sets the data later
};

// Tensors that share a buffer. buft null: they stay in the memory map.
struct Group {
    ggml_backend_buffer_type_t           buft = nullptr;
    TensorHeaders                        headers;
    std::vector<Source>                  sources;
    std::vector<ggml_backend_buffer_ptr> buffers;
};

// ggml aborts on products with integers and F64, and on get_rows of intermediate quantization types.
void check_type(const GgufReader & file, const GgufTensor & tensor, WeightUse use) {
    const bool is_f32 = tensor.type == GGML_TYPE_F32;
    if (is_f32 || (use != WeightUse::vector && ggml_get_type_traits(tensor.type)->to_float)) {
        return;
    }
    throw Error(ErrorKind::unsupported,
                file.path() + ": tensor " + tensor.name + " has type " + ggml_type_name(tensor.type) + ", expected " +
                    (use == WeightUse::vector ? "f32" : "one that can be multiplied"),
                "convert or quantize the model again");
}

// Whether the device supports mul_mat with a weight of this shape in this buffer type.
bool supports_mul_mat(ggml_backend_dev_t dev, ggml_backend_buffer_type_t buft, ggml_type type, const int64_t * ne) {
    ggml_context_ptr        ctx = new_tensor_context(8);
    ggml_backend_buffer_ptr empty(ggml_backend_buft_alloc_buffer(buft, 0));
    if (!empty) {
        return false;
    }
    Node w        = ggml_new_tensor_2d(ctx.get(), type, ne[0], ne[1]);
    Node x        = ggml_new_tensor_2d(ctx.get(), GGML_TYPE_F32, ne[0], 64);
    w->buffer     = empty.get();
    const bool ok = ggml_backend_dev_supports_op(dev, ggml_mul_mat(ctx.get(), w, x));
    w->buffer     = nullptr;
    return ok;
}

std::vector<ggml_backend_buffer_type_t> extra_buffer_types(ggml_backend_dev_t dev) {
    std::vector<ggml_backend_buffer_type_t> buffer_types;
    const auto                              get = reinterpret_cast<ggml_backend_dev_get_extra_bufts_t>(
        ggml_backend_reg_get_proc_address(ggml_backend_dev_backend_reg(dev), "ggml_backend_dev_get_extra_bufts"));
    for (ggml_backend_buffer_type_t * buft = get ? get(dev) : nullptr; buft && *buft; buft++) {
        buffer_types.push_back(*buft);
    }
    return buffer_types;
}

bool has_unallocated(ggml_context * ctx) {
    Node node = ggml_get_first_tensor(ctx);
    while (node && node->buffer) {
        node = ggml_get_next_tensor(ctx, node);
    }
    return node != nullptr;
}

} // namespace

struct WeightStore::Impl {
    DeviceInfo                                     device;
    std::vector<ggml_backend_buffer_type_t>        buffer_types;
    bool                                           can_mmap;
    std::map<ggml_backend_buffer_type_t, Group>    groups;
    bool                                           packs = false;
    Group                                          packed; // weights in our own layout (graph/packed_product.h)
    std::vector<std::shared_ptr<const GgufReader>> files;
    size_t                                         n_bytes = 0;

    Group & group(ggml_backend_buffer_type_t buft) {
        Group & found = groups[buft];
        found.buft    = buft;
        return found;
    }

    // The faster buffer type for products; null when there is none.
    ggml_backend_buffer_type_t fast_buffer_type(ggml_type type, const int64_t * ne, WeightUse use) const {
        if (use == WeightUse::matrix) {
            for (ggml_backend_buffer_type_t buffer_type : buffer_types) {
                if (supports_mul_mat(device.dev, buffer_type, type, ne)) {
                    return buffer_type;
                }
            }
        }
        return nullptr;
    }

    bool goes_packed(ggml_type type, const int64_t * ne, WeightUse use) const {
        return packs && use == WeightUse::matrix && can_pack(type, ne);
    }

    // Null: stay in the memory map.
    ggml_backend_buffer_type_t choose(const GgufTensor & tensor, WeightUse use) const {
        if (ggml_backend_buffer_type_t buffer_type = fast_buffer_type(tensor.type, tensor.ne, use)) {
            return buffer_type;
        }
        ggml_backend_buffer_type_t own = ggml_backend_dev_buffer_type(device.dev);
        const bool aligned = reinterpret_cast<uintptr_t>(tensor.data) % ggml_backend_buft_get_alignment(own) == 0;
        return can_mmap && aligned ? nullptr : own;
    }

    void load_mapped(Group & group);
    void load_copied(Group & group);
    void load_packed(Group & group);
};

WeightStore::WeightStore(const DeviceInfo & device, bool repack, bool use_mmap, bool pack)
    : impl_(std::make_unique<Impl>()) {
    impl_->device = device;
    if (repack) {
        impl_->buffer_types = extra_buffer_types(device.dev);
    }
    impl_->packs = pack && device.is_cpu;
    ggml_backend_dev_props props{};
    ggml_backend_dev_get_props(device.dev, &props);
    impl_->can_mmap = use_mmap && device.is_cpu && props.caps.buffer_from_host_ptr;
}

WeightStore::~WeightStore()                       = default;
WeightStore::WeightStore(WeightStore &&) noexcept = default;

Node WeightStore::add(std::shared_ptr<const GgufReader> file, const GgufTensor & tensor, WeightUse use) {
    check_type(*file, tensor, use);
    Group & group =
        impl_->goes_packed(tensor.type, tensor.ne, use) ? impl_->packed : impl_->group(impl_->choose(tensor, use));
    for (const Source & source : group.sources) {
        if (source.tensor == &tensor) {
            return source.node;
        }
    }
    Node node = ggml_new_tensor(group.headers.ctx(), tensor.type, tensor.n_dims, tensor.ne);
    ggml_set_name(node, tensor.name.c_str());
    group.sources.push_back({ node, std::move(file), &tensor, {} });
    impl_->n_bytes += tensor.size;
    return node;
}

Node WeightStore::add_host(const std::string & name, ggml_type type, const std::vector<int64_t> & ne,
                           std::vector<uint8_t> data, WeightUse use) {
    ggml_backend_buffer_type_t buffer_type = impl_->fast_buffer_type(type, ne.data(), use);
    if (!buffer_type) {
        buffer_type = ggml_backend_dev_buffer_type(impl_->device.dev);
    }
    Group & group = impl_->goes_packed(type, ne.data(), use) ? impl_->packed : impl_->group(buffer_type);
    Node    node  = ggml_new_tensor(group.headers.ctx(), type, int(ne.size()), ne.data());
    GGML_ASSERT(ggml_nbytes(node) == data.size());
    ggml_set_name(node, name.c_str());
    impl_->n_bytes += data.size();
    group.sources.push_back({ node, nullptr, nullptr, std::move(data) });
    return node;
}

Node WeightStore::add_host(const std::string & name, const std::vector<int64_t> & ne, const std::vector<float> & data) {
    std::vector<uint8_t> bytes(data.size() * sizeof(float));
    std::memcpy(bytes.data(), data.data(), bytes.size());
    return add_host(name, GGML_TYPE_F32, ne, std::move(bytes));
}

Node WeightStore::add_empty(const std::string & name, ggml_type type, const std::vector<int64_t> & ne) {
    Group & group = impl_->group(ggml_backend_dev_buffer_type(impl_->device.dev));
    Node    node  = ggml_new_tensor(group.headers.ctx(), type, int(ne.size()), ne.data());
    ggml_set_name(node, name.c_str());
    impl_->n_bytes += ggml_nbytes(node);
    group.sources.push_back({ node, nullptr, nullptr, {} });
    return node;
}

void WeightStore::Impl::load_mapped(Group & group) {
    for (Source & source : group.sources) {
        // One buffer per tensor: in between the file has tensors that are copied elsewhere.
        void * data = const_cast<void *>(source.tensor->data);
        group.buffers.emplace_back(
            ggml_backend_dev_buffer_from_host_ptr(device.dev, data, source.tensor->size, source.tensor->size));
        if (!group.buffers.back() ||
            ggml_backend_tensor_alloc(group.buffers.back().get(), source.node, data) != GGML_STATUS_SUCCESS) {
            throw Error(ErrorKind::memory, source.file->path() + ": tensor " + source.tensor->name +
                                               " cannot be used from the file's map");
        }
        ggml_backend_buffer_set_usage(group.buffers.back().get(), GGML_BACKEND_BUFFER_USAGE_WEIGHTS);
        files.push_back(source.file);
    }
}

void WeightStore::Impl::load_copied(Group & group) {
    size_t needed = 0;
    for (const Source & source : group.sources) {
        needed += ggml_backend_buft_get_alloc_size(group.buft, source.node);
    }
    if (device.is_cpu) {
        require_memory(needed, "weights", "use a smaller quantization of the model");
    }
    for (const ggml_context_ptr & ctx : group.headers.contexts()) {
        if (!has_unallocated(ctx.get())) {
            continue;
        }
        group.buffers.emplace_back(ggml_backend_alloc_ctx_tensors_from_buft(ctx.get(), group.buft));
        if (!group.buffers.back()) {
            throw device_memory_error("weights", needed, device, "use a smaller quantization of the model");
        }
        ggml_backend_buffer_set_usage(group.buffers.back().get(), GGML_BACKEND_BUFFER_USAGE_WEIGHTS);
    }
    for (const Source & source : group.sources) {
        const void * data = source.tensor ? source.tensor->data : source.host.data();
        if (data) {
            set_node(source.node, data, ggml_nbytes(source.node));
        }
        if (source.tensor) {
            source.file->release_pages(*source.tensor);
        }
    }
}

void WeightStore::Impl::load_packed(Group & group) {
    ggml_backend_buffer_type_t buft      = ggml_backend_dev_buffer_type(device.dev);
    const size_t               alignment = ggml_backend_buft_get_alignment(buft);
    size_t                     needed    = 0;
    for (const Source & source : group.sources) {
        needed += GGML_PAD(packed_size(source.node), alignment);
    }
    require_memory(needed, "weights", "use a smaller quantization of the model");
    group.buffers.emplace_back(ggml_backend_buft_alloc_buffer(buft, needed));
    ggml_backend_buffer_t buffer = group.buffers.back().get();
    if (!buffer) {
        throw device_memory_error("weights", needed, device, "use a smaller quantization of the model");
    }
    ggml_backend_buffer_set_usage(buffer, GGML_BACKEND_BUFFER_USAGE_WEIGHTS);
    char * to = static_cast<char *>(ggml_backend_buffer_get_base(buffer));
    for (const Source & source : group.sources) {
        if (ggml_backend_tensor_alloc(buffer, source.node, to) != GGML_STATUS_SUCCESS) {
            throw device_memory_error("weights", needed, device, "use a smaller quantization of the model");
        }
        to += GGML_PAD(packed_size(source.node), alignment);
    }
    // A share at a time, so that only its pages of the file are in memory beside the packed weights.
    constexpr size_t kShareBytes = 64 << 20;
    for (size_t first = 0; first < group.sources.size();) {
        std::vector<PackSource> share;
        size_t                  n_share_bytes = 0, last = first;
        for (; last < group.sources.size() && n_share_bytes < kShareBytes; last++) {
            const Source & source = group.sources[last];
            share.push_back({ source.node, source.tensor ? source.tensor->data : source.host.data() });
            n_share_bytes += packed_size(source.node);
        }
        pack_weights(share);
        for (; first < last; first++) {
            if (group.sources[first].tensor) {
                group.sources[first].file->release_pages(*group.sources[first].tensor);
            }
        }
    }
}

void WeightStore::load() {
    if (!impl_->packed.sources.empty()) {
        impl_->load_packed(impl_->packed);
        impl_->packed.sources.clear();
    }
    for (auto & [buft, group] : impl_->groups) {
        if (group.sources.empty()) {
            continue;
        }
        if (buft) {
            impl_->load_copied(group);
        } else {
            impl_->load_mapped(group);
        }
        group.sources.clear();
    }
}

std::vector<Node> WeightStore::nodes() const {
    std::vector<Node> all;
    for (const auto & [buft, group] : impl_->groups) {
        group.headers.for_each([&](Node node) { all.push_back(node); });
    }
    impl_->packed.headers.for_each([&](Node node) { all.push_back(node); });
    return all;
}

size_t WeightStore::n_bytes() const {
    return impl_->n_bytes;
}

WeightStores::WeightStores(const LayerSplit & split, bool repack, bool use_mmap) : split_(split) {
    for (const DeviceInfo & device : split_.devices) {
        // Our packed layout works only if the whole graph runs on the CPU.
        stores_.emplace_back(device, repack, use_mmap, repack && !split_.is_split());
    }
}

WeightStore & WeightStores::of(const TensorSpec & spec) {
    if (spec.layer >= 0) {
        return on_device(split_.device_of(spec.layer));
    }
    return spec.role == TensorRole::table || spec.role == TensorRole::constant ? on_device(split_.device_of(0))
                                                                               : of_head();
}

void WeightStores::load() {
    for (WeightStore & store : stores_) {
        store.load();
    }
}

size_t WeightStores::n_bytes() const {
    size_t n = 0;
    for (const WeightStore & store : stores_) {
        n += store.n_bytes();
    }
    return n;
}

} // namespace penelope
