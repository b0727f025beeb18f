// docs/tour.md against the program: its code is that of the source files, its numbers are those the bundled model
// gives.
//
// Before each block of the page stands a comment that says where it comes from:
//     <!-- code: FILE | FROM | TO -->   the lines of FILE from the first with FROM to the next with TO
//     <!-- numbers: NAME -->            what this test prints under that name
// With PENELOPE_TOUR_OUT=FILE the page is written to FILE with every block brought up to date.
#include "base/format.h"
#include "gguf/reader.h"
#include "graph/tape.h"
#include "infer/prompt.h"
#include "infer/session.h"
#include "model/lora.h"
#include "model/row_inputs.h"
#include "sidecar/sidecar.h"
#include "support/cpu.h"
#include "support/difference.h"
#include "support/temp_dir.h"
#include "text/tokenizer.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <map>
#include <set>
#include <sstream>

using namespace penelope;

namespace {

const std::string root      = PENELOPE_TEST_DIR "/..";
const std::string base_file = root + "/models/thread-0.6M-Q8_0.gguf";
const std::string side_file = root + "/models/thread-0.6M-thread-penelope-Q8_0.gguf";
const std::string question  = "Bt aC rz DD bH oM VD JJ WX Fr zJ IF uu Na tu io MT PW vi HP ZN jg dB XV CI Td gb ?Z";

// Two numbers of the page agree when they differ by less than this, relative or absolute. Products with Q8_0 weights
// round the activations to 8 bits, and processors do so in different orders.
constexpr double kTolerance = 0.03;

using Lines = std::vector<std::string>;
// Softmax weights: [n_head][rows that look][rows looked at].
using Weights = std::vector<std::vector<std::vector<float>>>;

Lines lines_of(const std::string & text) {
    Lines              lines;
    std::istringstream in(text);
    for (std::string line; std::getline(in, line);) {
        lines.push_back(line);
    }
    return lines;
}

std::string without_spaces(std::string text) {
    text.erase(std::remove_if(text.begin(), text.end(), [](unsigned char c) { return std::isspace(c); }), text.end());
    return text;
}

std::string trimmed(const std::string & text) {
    const size_t begin = text.find_first_not_of(' '), end = text.find_last_not_of(' ');
    return begin == std::string::npos ? "" : text.substr(begin, end + 1 - begin);
}

// ---- the model ----

struct Tensor {
    int                n_rows, d;
    std::vector<float> data;

    std::vector<float> row(int i) const {
        return { data.begin() + ptrdiff_t(i) * d, data.begin() + ptrdiff_t(i + 1) * d };
    }
    double norm(int i) const {
        double sum = 0;
        for (const float x : row(i)) {
            sum += double(x) * double(x);
        }
        return std::sqrt(sum);
    }
};

double cosine(const Tensor & a, const Tensor & b, int row) {
    const std::vector<float> x = a.row(row), y = b.row(row);
    double                   dot = 0;
    for (size_t i = 0; i < x.size(); i++) {
        dot += double(x[i]) * double(y[i]);
    }
    return dot / (a.norm(row) * b.norm(row));
}

class Model {
  public:
    Model() {
        LoadOptions load;
        load.base    = base_file;
        load.sidecar = side_file;
        load.device  = "CPU";
        load.repack  = false;
        engine       = Engine::load(load);
        SessionOptions options;
        options.kv_type   = GGML_TYPE_F32;
        options.n_threads = 1;
        session           = std::make_unique<Session>(engine, options);
        prompt            = prompt_tokens(*engine, question, PromptForm::templated);
    }

    std::map<std::string, Tensor> states(int n_steps) {
        std::map<std::string, Tensor> found;
        for (const StateTensor & t : session->dump(prompt, n_steps)) {
            const int d = int(t.shape.back());
            found.insert({ t.name, Tensor{ int(t.data.size()) / d, d, t.data } });
        }
        return found;
    }

    std::string first_token(int n_steps) {
        GenerateOptions generate;
        generate.n_steps   = n_steps;
        generate.n_predict = 1;
        return session->generate(prompt, generate).text;
    }

    std::string letter(int position) const {
        return engine->tokenizer().decode({ prompt[size_t(position)] }, { true });
    }

    // Attention of a layer, computed once more with the softmax as a node that can be looked at: of all rows in the
    // boundary pass (Equation 2), and of the memory rows in step t (Equation 4).
    Weights boundary_attention(const std::map<std::string, Tensor> & states, int layer) const;
    Weights step_attention(const std::map<std::string, Tensor> & states, int t, int layer) const;

    std::shared_ptr<const Engine> engine;
    std::unique_ptr<Session>      session;
    std::vector<int32_t>          prompt;
};

// A tensor of the sidecar as rows.
std::vector<float> module(const char * name) {
    const GgufReader file = GgufReader::open(side_file);
    return read_f32(file, *file.find_tensor(name));
}

// Computes the graph and returns the softmax of one layer; there is one for each layer that `n_rows` rows went through.
// `result` has to come out as `expected`: these are the weights of the model's own computation.
Weights weights_of(Graph & g, int n_rows, int which, Node result, const std::vector<float> & expected,
                   const std::function<void()> & fill) {
    g.output(result);
    std::vector<Node> soft; // [n_kv, n_rows, n_head]
    for (Node node : g.nodes()) {
        if (node->op == GGML_OP_SOFT_MAX && node->ne[1] == n_rows) {
            soft.push_back(node);
        }
    }
    REQUIRE(which < int(soft.size()));
    Node weights = soft[size_t(which)];
    g.output(weights);
    g.allocate(test::cpu());
    fill();
    g.compute(test::cpu());
    CHECK(test::difference(get_node(result), expected) < 0.02 * test::largest(expected));

    const std::vector<float> all  = get_node(weights);
    const size_t             n_kv = size_t(weights->ne[0]);
    Weights                  out(size_t(weights->ne[2]), std::vector<std::vector<float>>(size_t(n_rows)));
    auto                     next = all.begin();
    for (auto & head : out) {
        for (auto & row : head) {
            row.assign(next, next + ptrdiff_t(n_kv));
            next += ptrdiff_t(n_kv);
        }
    }
    return out;
}

Weights Model::boundary_attention(const std::map<std::string, Tensor> & states, int layer) const {
    std::vector<float>       anchors = module("penelope.memory.anchor");
    const std::vector<float> group = module("penelope.memory.group"), readout = module("penelope.readout.anchor");
    std::transform(anchors.begin(), anchors.end(), group.begin(), anchors.begin(), std::plus<>());
    anchors.insert(anchors.end(), readout.begin(), readout.end()); // [A + G; Q]
    const int d = states.at("M_0").d, n_inter = int(anchors.size()) / d, n = int(prompt.size()) + n_inter;

    Tape          tape; // with a tape attention is not fused
    Graph         g(&tape, &test::cpu());
    SequenceNodes kv;
    Node          ids       = g.input("ids", GGML_TYPE_I32, int64_t(prompt.size()));
    Node          interface = g.input("interface", GGML_TYPE_F32, d, n_inter);
    const auto    at        = std::vector<SeqRange>{ { 0, 0, n } };
    RowInputs     rows(g, "rows", engine->config(), at, true);
    Node          x = concat_rows(g, { embed_tokens(g, engine->backbone(), ids), interface });
    Node result     = run_layers(g, engine->backbone(), 0, int(engine->sidecar()->interval_start), x, rows.rows(), kv);
    std::vector<float> expected;
    for (const char * name : { "H_x", "M_0", "R_0" }) {
        const std::vector<float> & part = states.at(name).data;
        expected.insert(expected.end(), part.begin(), part.end());
    }
    return weights_of(g, n, layer, result, expected, [&] {
        g.set(ids, prompt);
        g.set(interface, anchors);
        rows.fill(at, nullptr);
    });
}

Weights Model::step_attention(const std::map<std::string, Tensor> & states, int t, int layer) const {
    const Tensor &           hx     = states.at("H_x");
    Tensor                   memory = states.at("M_" + std::to_string(t - 1));
    const std::vector<float> group = module("penelope.memory.group"), step = module("penelope.memory.step");
    for (int i = 0; i < memory.n_rows * memory.d; i++) { // M_{t-1} + G + e_t
        memory.data[size_t(i)] += group[size_t(i)] + step[size_t((t - 1) * memory.d + i % memory.d)];
    }
    const int first = int(engine->sidecar()->interval_start), last = int(engine->sidecar()->interval_end);

    Tape          tape;
    Graph         g(&tape, &test::cpu());
    SequenceNodes kv;
    Node          x         = g.input("H_x", GGML_TYPE_F32, hx.d, hx.n_rows);
    Node          m         = g.input("memory", GGML_TYPE_F32, memory.d, memory.n_rows);
    const auto    prompt_at = std::vector<SeqRange>{ { 0, 0, hx.n_rows } };
    const auto    memory_at = std::vector<SeqRange>{ { 0, hx.n_rows, memory.n_rows } };
    RowInputs     prompt_rows(g, "prompt", engine->config(), prompt_at, true),
        memory_rows(g, "rows", engine->config(), memory_at, true);
    g.expand(run_layers(g, engine->backbone(), first, last, x, prompt_rows.rows(), kv));
    Node features = run_layers(g, engine->backbone(), first, last, m, memory_rows.rows(), kv);
    return weights_of(g, memory.n_rows, layer - first, features, states.at("H_" + std::to_string(t)).data, [&] {
        g.set(x, hx.data);
        g.set(m, memory.data);
        prompt_rows.fill(prompt_at, nullptr);
        memory_rows.fill(memory_at, nullptr);
    });
}

// ---- the blocks of numbers ----

class Printer {
  public:
    void operator()(const char * format, ...) __attribute__((format(printf, 2, 3))) {
        char    line[256];
        va_list arguments;
        va_start(arguments, format);
        std::vsnprintf(line, sizeof(line), format, arguments);
        va_end(arguments);
        text_ += line;
        text_ += "\n";
    }
    const std::string & text() const { return text_; }

  private:
    std::string text_;
};

std::string norms(const Tensor & t) {
    std::string text;
    for (int i = 0; i < t.n_rows; i++) {
        char number[32];
        std::snprintf(number, sizeof(number), "%s%.2f", i == 0 ? "" : ", ", t.norm(i));
        text += number;
    }
    return text;
}

std::map<std::string, std::string> compute_blocks() {
    Model                               model;
    const std::map<std::string, Tensor> one   = model.states(1);
    const std::map<std::string, Tensor> eight = model.states(8);
    const std::vector<TraceStep>        trace = model.session->trace(model.prompt, 8);
    const int                           n     = int(model.prompt.size());
    const int                           edge  = int(question.find("ZN")) + 2; // the N; BOS stands in front

    const int n_memory = one.at("M_0").n_rows;

    Printer rows, states, boundary, attention, decoded, update, steps;
    rows("prompt   positions 0..%d   %d tokens, the first is BOS, the last a newline", n - 1, n);
    rows("edge ZN  positions %d..%d  the %s at %d is where the thread goes first", edge - 1, edge,
         model.letter(edge).c_str(), edge);
    rows("memory   positions %d..%d  m = %d rows", n, n + n_memory - 1, n_memory);
    rows("readout  position  %d      q = %d row", n + n_memory, one.at("R_0").n_rows);

    states("H_x           [%d, %d]", one.at("H_x").n_rows, one.at("H_x").d);
    for (const char * name : { "M_0", "R_0", "H_1", "Hhat_1", "M_1", "q_1", "R_1", "interface_out" }) {
        const Tensor & t = one.at(name);
        states("%-14s[%d, %d]   %s", name, t.n_rows, t.d, norms(t).c_str());
    }

    const int     asked = int(question.size()); // the letter after "?"; BOS stands in front
    const Weights below = model.boundary_attention(one, 0), weights = model.step_attention(one, 1, 1);
    const auto    row = [&](Printer & out, const std::string & what, const Weights & w, int from, int to) {
        out("%-34s %5.2f   %5.2f   %5.2f   %5.2f", what.c_str(), double(w[0][size_t(from)][size_t(to)]),
               double(w[1][size_t(from)][size_t(to)]), double(w[2][size_t(from)][size_t(to)]),
               double(w[3][size_t(from)][size_t(to)]));
    };
    const std::string heads = "                                   head 0  head 1  head 2  head 3";
    boundary("%s", heads.c_str());
    row(boundary, "N of ZN looks at the Z before it", below, edge, edge - 1);
    row(boundary, "memory row 0 looks at the asked Z", below, n, asked);
    row(boundary, "memory row 1 looks at the asked Z", below, n + 1, asked);
    attention("%s", heads.c_str());
    row(attention, "memory row 0 looks at the N of ZN", weights, 0, edge);
    row(attention, "memory row 1 looks at the N of ZN", weights, 1, edge);

    for (size_t i = 0; i < 2; i++) {
        const std::vector<TokenScore> & best = trace[1].features_top[i];
        decoded("H_1 row %zu   %s %.1f   the next best %.1f", i, best[0].text.c_str(), double(best[0].logit),
                double(best[1].logit));
    }

    const double alpha = double(one.at("alpha_1").data[0]);
    update("alpha_1          %.2f", alpha);
    update("0.5 * alpha_1    %.2f", 0.5 * alpha);
    update("cos(M_0, M_1)    %.2f, %.2f", cosine(one.at("M_0"), one.at("M_1"), 0),
           cosine(one.at("M_0"), one.at("M_1"), 1));
    update("cos(R_0, R_1)    %.2f", cosine(one.at("R_0"), one.at("R_1"), 0));

    steps("t   head 3 of layer 1 looks at     H_t says   the answer at K = t begins");
    for (int t = 1; t <= 8; t++) {
        const std::vector<float> look = model.step_attention(eight, t, 1)[3][0];
        const int                at   = int(std::max_element(look.begin(), look.end()) - look.begin());
        steps("%d   position %2d, %s after %s, %.2f    %s          %s", t, at, model.letter(at).c_str(),
              model.letter(at - 1).c_str(), double(look[size_t(at)]), trace[size_t(t)].features_top[0][0].text.c_str(),
              model.first_token(t).c_str());
    }
    return { { "rows", rows.text() },           { "states", states.text() },   { "boundary", boundary.text() },
             { "attention", attention.text() }, { "decoded", decoded.text() }, { "update", update.text() },
             { "steps", steps.text() } };
}

// ---- the page ----

std::string excerpt(const std::string & source) {
    const size_t first = source.find('|'), second = source.find('|', first + 1);
    REQUIRE_MESSAGE(second != std::string::npos, source);
    const std::string from = trimmed(source.substr(first + 1, second - first - 1)),
                      to   = trimmed(source.substr(second + 1));
    const Lines lines      = lines_of(test::read_bytes(root + "/" + trimmed(source.substr(0, first))));
    auto        begin =
        std::find_if(lines.begin(), lines.end(), [&](const auto & l) { return l.find(from) != std::string::npos; });
    REQUIRE_MESSAGE(begin != lines.end(), source << ": no line has " << from);
    auto end = std::find_if(begin, lines.end(),
                            [&](const auto & l) { return to == "}" ? l == to : l.find(to) != std::string::npos; });
    REQUIRE_MESSAGE(end != lines.end(), source << ": no line has " << to);
    const size_t indent = begin->find_first_not_of(' ');
    std::string  text;
    for (auto line = begin; line <= end; ++line) {
        text += (line->size() > indent ? line->substr(indent) : "") + "\n";
    }
    return text;
}

std::optional<double> as_number(std::string word) {
    while (!word.empty() && (word.back() == ',' || word.back() == '.')) {
        word.pop_back();
    }
    char *       end   = nullptr;
    const double value = std::strtod(word.c_str(), &end);
    const bool   whole = !word.empty() && end == word.c_str() + word.size() && word.find('.') != std::string::npos;
    return whole ? std::optional(value) : std::nullopt;
}

std::vector<std::string> words_of(const std::string & text) {
    std::istringstream       in(text);
    std::vector<std::string> words;
    for (std::string word; in >> word;) {
        words.push_back(word);
    }
    return words;
}

// Word by word, numbers with a point within the tolerance.
void check_numbers(const std::string & found, const std::string & expected) {
    const std::vector<std::string> a = words_of(found), b = words_of(expected);
    CHECK_MESSAGE(a.size() == b.size(), "the page has\n" << found << "and the model gives\n" << expected);
    for (size_t i = 0; i < a.size() && a.size() == b.size(); i++) {
        const auto x = as_number(a[i]), y = as_number(b[i]);
        if (x && y) {
            CHECK_MESSAGE(std::fabs(*x - *y) <= kTolerance * std::max(1.0, std::fabs(*y)), a[i] << " is " << b[i]);
        } else {
            CHECK_MESSAGE(a[i] == b[i], a[i] << " is " << b[i]);
        }
    }
}

// Text outside of blocks, comments and code spans.
std::string prose_of(const std::string & page) {
    std::string text;
    bool        in_block = false;
    for (const std::string & line : lines_of(page)) {
        if (line.rfind("```", 0) == 0) {
            in_block = !in_block;
        } else if (!in_block && line.rfind("<!--", 0) != 0) {
            bool in_span = false;
            for (const char c : line) {
                in_span = c == '`' ? !in_span : in_span;
                text += in_span || c == '`' ? ' ' : c;
            }
            text += '\n';
        }
    }
    return text;
}

} // namespace

TEST_CASE("the code and the numbers of docs/tour.md") {
    const std::string                        page   = test::read_bytes(root + "/docs/tour.md");
    const std::map<std::string, std::string> blocks = compute_blocks();
    std::string                              fresh, numbers;
    std::set<std::string>                    seen;
    int                                      n_excerpts = 0;

    const Lines lines = lines_of(page);
    for (size_t i = 0; i < lines.size(); i++) {
        fresh += lines[i] + "\n";
        const bool is_code    = lines[i].rfind("<!-- code: ", 0) == 0,
                   is_numbers = lines[i].rfind("<!-- numbers: ", 0) == 0;
        if (!is_code && !is_numbers) {
            continue;
        }
        const size_t      start  = lines[i].find(": ") + 2;
        const std::string source = trimmed(lines[i].substr(start, lines[i].find("-->") - start));
        CAPTURE(source);
        REQUIRE(i + 1 < lines.size());
        REQUIRE(lines[++i].rfind("```", 0) == 0);
        fresh += lines[i] + "\n";
        std::string shown;
        for (i++; i < lines.size() && lines[i] != "```"; i++) {
            shown += lines[i] + "\n";
        }
        REQUIRE(i < lines.size());
        std::string expected;
        if (is_code) {
            expected = excerpt(source);
            n_excerpts++;
            CHECK_MESSAGE(without_spaces(shown) == without_spaces(expected), "the source has\n" << expected);
        } else {
            REQUIRE(blocks.count(source) == 1);
            expected = blocks.at(source);
            seen.insert(source);
            numbers += shown;
            check_numbers(shown, expected);
        }
        fresh += expected + "```\n";
    }
    CHECK(seen.size() == blocks.size());
    CHECK(n_excerpts >= 6);

    // A number in the text stands in one of the blocks too.
    const std::vector<std::string> words = words_of(numbers);
    for (const std::string & word : words_of(prose_of(page))) {
        if (const auto number = as_number(word)) {
            const bool found =
                std::any_of(words.begin(), words.end(), [&](const std::string & w) { return as_number(w) == number; });
            CHECK_MESSAGE(found, word << " is in none of the blocks");
        }
    }
    if (const char * path = std::getenv("PENELOPE_TOUR_OUT")) {
        std::ofstream(path) << fresh;
    }
}
