// Lies in an otherwise valid GGUF header, for libFuzzer: a count, size, value, dimension, type or offset becomes another number.
// Random bytes alone seldom get past the checks that the whole is a GGUF file.
#include "gguf.h"

#include <cstdint>
#include <cstring>
#include <random>
#include <vector>

extern "C" size_t LLVMFuzzerMutate(uint8_t * data, size_t size, size_t max_size);

namespace {

struct Field {
    size_t offset, size;
};

// Walks the header and notes where its numbers are; stops where the bytes make no sense any more.
class Numbers {
  public:
    Numbers(const uint8_t * data, size_t size) : data_(data), size_(size) {
        if (size < 24 || std::memcmp(data, "GGUF", 4) != 0) {
            return;
        }
        pos_                     = 8;
        const uint64_t n_tensors = number(8), n_pairs = number(8);
        for (uint64_t i = 0; i < n_pairs && good_; i++) {
            text();
            value(uint32_t(number(4)));
        }
        for (uint64_t i = 0; i < n_tensors && good_; i++) {
            text();
            const uint64_t n_dims = number(4);
            for (uint64_t j = 0; j < n_dims && j < 8 && good_; j++) {
                number(8);
            }
            number(4);
            number(8);
        }
    }

    const std::vector<Field> & fields() const { return fields_; }
    size_t                     header_size() const { return pos_; }

  private:
    uint64_t number(size_t n, bool noted = true) {
        if (!good_ || pos_ + n > size_) {
            good_ = false;
            return 0;
        }
        uint64_t result = 0;
        std::memcpy(&result, data_ + pos_, n);
        if (noted) {
            fields_.push_back({ pos_, n });
        }
        pos_ += n;
        return result;
    }

    void text(bool noted = true) {
        const uint64_t length = number(8, noted);
        if (length > size_ - pos_) {
            good_ = false;
        } else if (good_) {
            pos_ += length;
        }
    }

    void value(uint32_t type) {
        if (type == GGUF_TYPE_STRING) {
            text();
        } else if (type == GGUF_TYPE_ARRAY) {
            const uint32_t element = uint32_t(number(4));
            const uint64_t n       = number(8);
            for (uint64_t i = 0; i < n && good_; i++) { // of a vocabulary only the first are worth a lie
                element == GGUF_TYPE_STRING ? text(i < 4) : void(number(scalar_size(element), i < 4));
            }
        } else {
            number(scalar_size(type));
        }
    }

    static size_t scalar_size(uint32_t type) {
        return type <= GGUF_TYPE_INT8 || type == GGUF_TYPE_BOOL ? 1
               : type <= GGUF_TYPE_INT16                        ? 2
               : type <= GGUF_TYPE_FLOAT32                      ? 4
                                                                : 8;
    }

    const uint8_t *    data_;
    size_t             size_;
    size_t             pos_  = 0;
    bool               good_ = true;
    std::vector<Field> fields_;
};

} // namespace

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t * data, size_t size, size_t max_size, unsigned int seed) {
    std::minstd_rand random(seed);
    const Numbers    header(data, size);
    if (header.fields().empty() || random() % 8 == 0) {
        return LLVMFuzzerMutate(data, size, max_size);
    }
    if (random() % 4 == 0) { // anything, but in the header alone and without moving what follows
        LLVMFuzzerMutate(data, header.header_size(), header.header_size());
        return size;
    }
    const Field field = header.fields()[random() % header.fields().size()];
    uint64_t    value = 0;
    std::memcpy(&value, data + field.offset, field.size);
    const uint64_t odd[] = { 0,          1,          2,          3,          7,          16,           31,
                             value + 1,  value - 1,  value * 2,  value / 2,  ~0ull,      1 << 16,      0x7fffffff,
                             0x80000000, 0xffffffff, 1ull << 40, 1ull << 62, 1ull << 63, random() % 64 };
    value                = odd[random() % (sizeof(odd) / sizeof(odd[0]))];
    std::memcpy(data + field.offset, &value, field.size);
    return size;
}
