// What a request asks, read from its JSON: the fields all routes share, and the messages of a conversation as a prompt.
#pragma once

#include "serve/fields.h"
#include "serve/service.h"

namespace penelope {

constexpr int kMaxLogprobs = 20;

struct GenerationRequest {
    std::shared_ptr<Job>     job           = std::make_shared<Job>();
    bool                     stream        = false;
    bool                     include_usage = false;     // in a stream, as a last chunk
    std::vector<std::string> warnings;                  // what was asked for and is ignored
    std::optional<Thinking>  thinking;                  // visible, other than by the server's default
    bool                     separate_reasoning = true; // the visible chain of thought from the answer
    OrderedJson              template_variables;        // chat_template_kwargs, null for none
};

// Sampling, limits, latent steps, stop strings, n, streaming. Throws RequestError naming the field.
GenerationRequest read_generation_request(const Service & service, const Fields & fields);

// n_predict from the first of these names that is given.
void read_token_limit(GenerationRequest & gen_request, const Fields & fields, const std::vector<std::string> & names);

// n_logprobs from "logprobs" and "top_logprobs".
void read_logprobs(GenerationRequest & gen_request, const Fields & fields);

// From "messages" (OpenAI and Anthropic alike) or such a list under another name.
std::vector<ChatMessage> read_messages(const Fields & fields, const std::string & name);

// What the answer has to be: "response_format" of a chat, "text.format" of a response, "output_config.format" of a
// message, llama.cpp's "json_schema" and "grammar". `body` is the request once more, because objects of Fields lose the
// order of their properties.
void read_constraint(GenerationRequest & gen_request, const Fields & fields, const std::string & body);

// The prompt of a conversation or of one text. Control tokens written out in them are plain text.
void set_chat_prompt(const Service & service, GenerationRequest & gen_request,
                     const std::vector<ChatMessage> & messages);
void set_text_prompt(const Service & service, GenerationRequest & gen_request, const std::string & text);

// Fields that would change the answer and that we do not have: refused rather than ignored.
void reject_fields(const Fields & fields, const std::vector<std::string> & names);

} // namespace penelope
