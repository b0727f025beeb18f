#include "base/error.h"

namespace penelope {

const char * error_kind_name(ErrorKind kind) {
    switch (kind) {
        case ErrorKind::usage: return "usage";
        case ErrorKind::not_found: return "not_found";
        case ErrorKind::format: return "format";
        case ErrorKind::unsupported: return "unsupported";
        case ErrorKind::memory: return "memory";
        case ErrorKind::device: return "device";
        case ErrorKind::io: return "io";
        case ErrorKind::cancelled: return "cancelled";
    }
    return "unknown";
}

} // namespace penelope
