#include "learn/learn_state.h"

#include "base/atomic_file.h"
#include "base/error.h"
#include "base/format.h"

namespace penelope {

LearnState read_learn_state(const std::string & path) {
    const Json json = read_json_file(path);
    LearnState state;
    state.options     = parse_ordered_json(dump_json(json.value("options", Json::object())), path);
    state.seconds     = json_get<double>(json, "seconds", path);
    state.n_questions = size_t(json_get<int64_t>(json, "questions", path));
    const Json stages = json.value("stages", Json::object());
    for (const auto & [name, row] : stages.items()) {
        const std::string where = path + ": " + name;
        StageState &      s     = state.stages[name];
        s.is_measured           = json_get<bool>(row, "measured", where);
        s.has_low_memory        = json_get<bool>(row, "low_memory", where);
        s.seconds               = json_get<double>(row, "seconds", where);
        s.is_done               = json_get<bool>(row, "done", where);
        s.probe.bytes           = uint64_t(json_get<int64_t>(row, "bytes", where));
        s.probe.speed           = { json_get<double>(row, "update_seconds", where),
                                    json_get<double>(row, "question_seconds", where) };
        s.result                = parse_ordered_json(dump_json(row.value("result", Json::object())), where);
    }
    return state;
}

void write_learn_state(const LearnState & state, const std::string & path) {
    OrderedJson stages = OrderedJson::object();
    for (const auto & [name, s] : state.stages) {
        stages[name] = { { "measured", s.is_measured },
                         { "low_memory", s.has_low_memory },
                         { "seconds", s.seconds },
                         { "done", s.is_done },
                         { "bytes", s.probe.bytes },
                         { "update_seconds", s.probe.speed.update_seconds },
                         { "question_seconds", s.probe.speed.question_seconds },
                         { "result", s.result } };
    }
    const OrderedJson json = { { "options", state.options },
                               { "seconds", state.seconds },
                               { "questions", state.n_questions },
                               { "stages", stages } };
    write_file(path, dump_json(json, 2) + "\n", true);
}

void check_same_options(const OrderedJson & before, const OrderedJson & now, const std::string & folder) {
    for (const auto & [name, value] : now.items()) {
        const std::string was = before.value(name, std::string()), is = value.get<std::string>();
        if (was == is) {
            continue;
        }
        const bool is_file = was.size() == 64 || is.size() == 64; // a checksum says nothing to people
        throw Error(ErrorKind::usage,
                    folder + ": cannot go on: " +
                        (is_file ? name + " has other contents than when the run was started"
                                 : name + " was " + (was.empty() ? "not given" : was) + ", now " +
                                       (is.empty() ? "it is not given" : is)),
                    "call it as before, choose another --out, or start over with --force");
    }
}

} // namespace penelope
