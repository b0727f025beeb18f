#include "text/string_table.h"

#include <functional>

namespace penelope {

namespace {

uint32_t hash_of(std::string_view text) {
    return static_cast<uint32_t>(std::hash<std::string_view>()(text));
}

} // namespace

StringTable::StringTable(size_t n_strings) {
    size_t n_slots = 16;
    while (n_slots < 2 * n_strings) {
        n_slots *= 2;
    }
    slots_.assign(n_slots, Slot{ 0, -1, 0, 0 });
    ends_.reserve(n_strings + 1);
    text_.reserve(8 * n_strings);
}

size_t StringTable::slot_of(std::string_view text, uint32_t hash) const {
    for (size_t i = hash & (slots_.size() - 1);; i = (i + 1) & (slots_.size() - 1)) {
        const Slot & slot = slots_[i];
        if (slot.number < 0) {
            return i;
        }
        if (slot.hash == hash && slot.size == text.size() &&
            text.compare(0, text.size(), text_.data() + slot.begin, slot.size) == 0) {
            return i;
        }
    }
}

int32_t StringTable::add(std::string_view text, bool indexed) {
    const int32_t number = size();
    text_.append(text);
    ends_.push_back(static_cast<uint32_t>(text_.size()));
    if (!indexed) {
        return -1;
    }
    const uint32_t hash = hash_of(text);
    Slot &         slot = slots_[slot_of(text, hash)];
    if (slot.number >= 0) {
        return slot.number;
    }
    slot = { hash, number, ends_[number], static_cast<uint32_t>(text.size()) };
    return -1;
}

int32_t StringTable::find(std::string_view text) const {
    return slots_[slot_of(text, hash_of(text))].number;
}

} // namespace penelope
