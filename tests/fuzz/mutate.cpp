#include "mutate.h"

#include "gguf.h"

#include <cstdint>
#include <cstring>
#include <vector>

namespace penelope::fuzz {

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

uint64_t odd_number(uint64_t value, std::minstd_rand & random) {
    const uint64_t odd[] = { 0,          1,          2,          3,          7,          16,           31,
                             value + 1,  value - 1,  ~0ull,      value * 2,  value / 2,  1 << 16,      0x7fffffff,
                             0x80000000, 0xffffffff, 1ull << 40, 1ull << 62, 1ull << 63, random() % 64 };
    return odd[random() % (sizeof(odd) / sizeof(odd[0]))];
}

void change_a_byte(std::string & bytes, size_t end, std::minstd_rand & random) {
    char & byte = bytes[random() % end];
    byte        = random() % 2 ? char(random()) : char(byte ^ (1 << random() % 8));
}

void change_a_stretch(std::string & bytes, std::minstd_rand & random) {
    const size_t from = random() % bytes.size();
    const size_t n    = std::min(bytes.size() - from, size_t(1 + random() % 32));
    if (random() % 2) {
        bytes.erase(from, n);
    } else {
        bytes.insert(random() % bytes.size(), bytes.substr(from, n));
    }
}

} // namespace

std::string damaged(std::string bytes, std::minstd_rand & random) {
    if (bytes.empty()) {
        return std::string(1, char(random()));
    }
    const auto *  data = reinterpret_cast<const uint8_t *>(bytes.data());
    const Numbers header(data, bytes.size());
    if (header.fields().empty() || random() % 16 == 0) {
        for (size_t n = 1 + random() % 4; n > 0 && !bytes.empty(); n--) {
            random() % 2 ? change_a_byte(bytes, bytes.size(), random) : change_a_stretch(bytes, random);
        }
    } else if (random() % 4 == 0) {
        change_a_byte(bytes, header.header_size(), random);
    } else {
        for (size_t n = 1 + random() % 2; n > 0; n--) {
            const Field field = header.fields()[random() % header.fields().size()];
            uint64_t    value = 0;
            std::memcpy(&value, &bytes[field.offset], field.size);
            value = odd_number(value, random);
            std::memcpy(&bytes[field.offset], &value, field.size);
        }
    }
    return bytes;
}

} // namespace penelope::fuzz
