// Models and sessions of the C API that free themselves.
#pragma once

#include "penelope.h"

#include <memory>

namespace penelope::test {

struct ModelDelete {
    void operator()(penelope_model * model) const { penelope_model_free(model); }
};
struct SessionDelete {
    void operator()(penelope_session * session) const { penelope_session_free(session); }
};
using ModelPtr   = std::unique_ptr<penelope_model, ModelDelete>;
using SessionPtr = std::unique_ptr<penelope_session, SessionDelete>;

} // namespace penelope::test
