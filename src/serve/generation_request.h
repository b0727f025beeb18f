// Parses a request: the fields that all routes share, and the messages of a conversation into a prompt.
#pragma once

#include "serve/fields.h"
#include "serve/messages.h"
#include "serve/service.h"

namespace penelope {

constexpr int kMaxLogprobs = 20;

struct GenerationRequest {
    std::shared_ptr<Job>     job           = std::make_shared<Job>();
    bool                     stream        = false;
    bool                     include_usage = false;       // as the last chunk of a stream
    std::vector<std::string> warnings;                    // requested features that are ignored
    std::optional<Thinking>  thinking;                    // <think> on or off, if the request says so
    bool                     separate_reasoning = true;   // return <think> text in a field of its own
    OrderedJson              template_variables;          // chat_template_kwargs; null: none
    Json                     tools       = Json::array(); // as the request has them
    Json                     tool_choice = "auto";
};

// Sampling, limits, latent steps, stop strings, n, streaming. Throws RequestError naming the field.
GenerationRequest read_generation_request(const Service & service, const Fields & fields);

// Sets n_predict from the first of these fields that is present.
void read_token_limit(GenerationRequest & gen_request, const Fields & fields, const std::vector<std::string> & names);

// Sets n_logprobs from "logprobs" and "top_logprobs".
void read_logprobs(GenerationRequest & gen_request, const Fields & fields);

// The response format: "response_format" (chat), "text.format" (Responses), "output_config.format" (Messages), or
// llama.cpp's "json_schema" and "grammar". `body` is the raw request, because Fields does not keep the order of
// properties.
void read_constraint(GenerationRequest & gen_request, const Fields & fields, const std::string & body);

// Tokenizes a conversation or a text. Control tokens written in the text are encoded as plain text.
void set_chat_prompt(const Service & service, GenerationRequest & gen_request,
                     const std::vector<ChatMessage> & messages);
void set_text_prompt(const Service & service, GenerationRequest & gen_request, const std::string & text);

// Rejects unsupported fields that would change the answer; ignoring them would be wrong.
void reject_fields(const Fields & fields, const std::vector<std::string> & names);

} // namespace penelope
