// A regular file mapped read-only into memory, or bytes that are in memory already. Move-only; unmaps in the
// destructor. An empty file has size 0 and data null.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace penelope {

// Bytes that somebody else owns; data null: none.
struct ByteView {
    const uint8_t * data = nullptr;
    size_t          size = 0;
};

class MappedFile {
  public:
    // Throws not_found when there is no such file, io when it cannot be opened or mapped, format when it is no regular
    // file.
    static MappedFile open(const std::string & path);
    // Bytes that stay unchanged as long as this object lives; `name` takes the place of the path in messages.
    static MappedFile borrow(const std::string & name, const ByteView & bytes);

    MappedFile(MappedFile && other) noexcept;
    MappedFile & operator=(MappedFile && other) noexcept;
    ~MappedFile();

    const std::string & path() const { return path_; }
    const uint8_t *     data() const { return data_; }
    size_t              size() const { return size_; }

    // Hints; failures are of no consequence. Ranges are clipped to the file.
    void will_need(size_t offset, size_t size) const;
    // Gives whole pages inside the range back to the system; they are read from the file again when touched.
    void drop(size_t offset, size_t size) const;

  private:
    MappedFile(std::string path, const uint8_t * data, size_t size);

    std::string     path_;
    const uint8_t * data_     = nullptr;
    size_t          size_     = 0;
    bool            is_owned_ = true; // false: borrowed, not a map
};

} // namespace penelope
