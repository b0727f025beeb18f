/*
 * penelope.h: load a model, ask it questions, look at its latent steps. Pure C.
 *
 *     penelope_model_params params = penelope_model_default_params();
 *     params.base_path    = "base.gguf";
 *     params.sidecar_path = "listops.gguf";
 *     penelope_model * model = NULL;
 *     if (penelope_model_load(&params, &model) != PENELOPE_OK) {
 *         fprintf(stderr, "%s\n", penelope_error_message());
 *     }
 *     penelope_session * session = NULL;
 *     penelope_session_new(model, NULL, &session);
 *     penelope_generate(session, "[MAX 3 [MIN 4 7] 2]", NULL, print_piece, NULL, NULL);
 *     penelope_session_free(session);
 *     penelope_model_free(model);
 *
 * Threads: a model is read-only after loading; any number of threads may create and use sessions on it. A session
 * belongs to one thread at a time; only penelope_session_cancel() and penelope_session_reset_cancel() may be called on
 * it from elsewhere while it works.
 *
 * Ownership: what a function hands out through a `**` parameter is freed by the matching _free function; _free(NULL)
 * does nothing. Sessions keep alive what they need of their model, so the two may be freed in either order. Strings and
 * arrays handed out belong to the library and live as long as the comment at the function says. Strings passed in are
 * copied.
 *
 * Errors: functions that can fail return a penelope_status. No C++ exception leaves the library. After a failure
 * penelope_error_message() and penelope_error_hint() describe it to the thread that made the call.
 *
 * All text is UTF-8.
 */
#ifndef PENELOPE_H
#define PENELOPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#if defined(_WIN32) && defined(PENELOPE_SHARED)
#    ifdef PENELOPE_BUILD
#        define PENELOPE_API __declspec(dllexport)
#    else
#        define PENELOPE_API __declspec(dllimport)
#    endif
#elif defined(__GNUC__)
#    define PENELOPE_API __attribute__((visibility("default")))
#else
#    define PENELOPE_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* ---- status and errors ---- */

typedef enum penelope_status {
    PENELOPE_OK = 0,
    PENELOPE_ERROR_USAGE,       /* an argument is wrong: K out of range, prompt empty or too long, NULL given */
    PENELOPE_ERROR_NOT_FOUND,   /* a file does not exist */
    PENELOPE_ERROR_FORMAT,      /* a file is damaged or does not fit its base */
    PENELOPE_ERROR_UNSUPPORTED, /* a file asks for something this library cannot do */
    PENELOPE_ERROR_MEMORY,
    PENELOPE_ERROR_DEVICE,
    PENELOPE_ERROR_IO,
    PENELOPE_ERROR_CANCELLED,
    PENELOPE_ERROR_INTERNAL /* a defect of the library */
} penelope_status;

/* The last failure on this thread, "what: why" and what to do about it; "" before the first. Never NULL. Valid until
 * the next failing call on this thread. */
PENELOPE_API const char * penelope_error_message(void);
PENELOPE_API const char * penelope_error_hint(void);

/* "format", "memory", ...; never NULL. */
PENELOPE_API const char * penelope_status_name(penelope_status status);

/* The library's version, "0.2.0", and that of ggml with its backends. Static strings. */
PENELOPE_API const char * penelope_version(void);
PENELOPE_API const char * penelope_ggml_version(void);

/* ---- model: loaded files, read-only, shared ---- */

typedef struct penelope_model penelope_model;

/* A GGUF file that is in memory already. It is used in place, as a mapped file is: it must stay unchanged until the
 * model and all its sessions are freed. Its address must be a multiple of 8, as that of malloc() is. data NULL: none.
 */
typedef struct penelope_buffer {
    const void * data;
    size_t       size; /* bytes */
} penelope_buffer;

typedef struct penelope_lora {
    const char *    path;
    float           scale;
    penelope_buffer buffer; /* instead of the file at path; path is then a name for messages, or NULL */
} penelope_lora;

typedef struct penelope_model_params {
    const char *          base_path;    /* backbone GGUF, or a bundle; required */
    const char *          sidecar_path; /* Penelope, Coconut or CODI sidecar GGUF; NULL: none */
    const penelope_lora * loras;        /* n_loras adapters, each with its scale */
    size_t                n_loras;
    const char *          device; /* "auto" or a name such as "CPU", "CUDA0" */
    /* Instead of the files at base_path and sidecar_path; the paths are then names for messages, or NULL. */
    penelope_buffer base;
    penelope_buffer sidecar;
} penelope_model_params;

PENELOPE_API penelope_model_params penelope_model_default_params(void);

/* Reads and checks the files and places the weights. On success *model is set; on failure it is NULL. */
PENELOPE_API penelope_status penelope_model_load(const penelope_model_params * params, penelope_model ** model);
PENELOPE_API void            penelope_model_free(penelope_model * model);

typedef struct penelope_model_info {
    const char * name;   /* strings live as long as the model */
    const char * type;   /* of most weights: "Q8_0" */
    const char * device; /* that holds the weights: "CPU" */
    const char * method; /* default way to answer: "penelope", "coconut", "codi"; "plain" without a sidecar */
    int32_t      n_layers;
    int32_t      n_embd;
    int32_t      n_vocab;
    int32_t      n_ctx_max; /* context size the model was trained for */
    int32_t      k_default; /* latent steps when none are asked for; 0 without a sidecar */
    int32_t      k_max;     /* most latent steps; 0 without a sidecar */
} penelope_model_info;

PENELOPE_API penelope_status penelope_model_get_info(const penelope_model * model, penelope_model_info * info);

/* ---- session: one mutable timeline on a model ---- */

typedef struct penelope_session penelope_session;

typedef enum penelope_kv_type {
    PENELOPE_KV_F16 = 0,
    PENELOPE_KV_F32,
    PENELOPE_KV_Q8_0,
    PENELOPE_KV_BF16
} penelope_kv_type;

typedef struct penelope_session_params {
    int32_t          n_ctx;     /* context size in tokens; 0: the smaller of 4096 and the model's own */
    int32_t          n_threads; /* 0: the physical cores this process may use; 1024 at most */
    penelope_kv_type kv_type;   /* storage of keys and values */
} penelope_session_params;

PENELOPE_API penelope_session_params penelope_session_default_params(void);

/* params NULL: the defaults. On success *session is set; on failure it is NULL. */
PENELOPE_API penelope_status penelope_session_new(const penelope_model * model, const penelope_session_params * params,
                                                  penelope_session ** session);
PENELOPE_API void            penelope_session_free(penelope_session * session);

/* Forgets everything seen so far. */
PENELOPE_API penelope_status penelope_session_clear(penelope_session * session);

/* Makes the running penelope_generate() end soon with PENELOPE_FINISH_CANCELLED, or the running penelope_trace() with
 * PENELOPE_ERROR_CANCELLED. May be called at any moment, from any thread and from a signal handler.
 *
 * A cancel is never lost: it stays pending until one call has ended because of it. Where no call runs, or the running
 * one is already complete, it ends the next call at once. */
PENELOPE_API void penelope_session_cancel(penelope_session * session);

/* Drops a pending cancel. To start a call that an earlier cancel must not end, e.g. one meant for the answer before,
 * call this first. From any thread and from a signal handler. */
PENELOPE_API void penelope_session_reset_cancel(penelope_session * session);

/* ---- latent steps ---- */

typedef struct penelope_token_score {
    const char * text;
    int32_t      token;
    float        logit;
} penelope_token_score;

/* One group of latent rows at one step. */
typedef struct penelope_trace_rows {
    size_t                       n_rows;
    const float *                norms;   /* [n_rows]; NULL for features */
    const float *                cosines; /* [n_rows] to the step before; NULL at step 0 and for features */
    size_t                       n_top;   /* best tokens per row */
    const penelope_token_score * top;     /* [n_rows][n_top] through final norm and head, best first */
    size_t                       n_embd;
    const float *                states; /* [n_rows][n_embd] */
} penelope_trace_rows;

/* How the memory rows of a step attended to the prompt. */
typedef struct penelope_attention {
    size_t          n_layers; /* of the interval that have attention; 0 at step 0 and unless it was asked for */
    const int32_t * layers;   /* [n_layers] their numbers in the backbone */
    size_t          n_heads;
    size_t          n_rows;      /* memory rows */
    size_t          n_positions; /* tokens of the prompt */
    /* [n_layers][n_heads][n_rows][n_positions], 0 to 1; what a row lacks to 1 went to the memory itself */
    const float * weights;
} penelope_attention;

typedef struct penelope_trace_step {
    int32_t             step;     /* 0: the state at the boundary, then 1..K */
    float               alpha;    /* step size of the memory update; 0 at step 0 */
    penelope_trace_rows memory;   /* M_t */
    penelope_trace_rows readout;  /* R_t */
    penelope_trace_rows features; /* H_t, what the step computed from the memory; no rows at step 0 */
    penelope_attention  attention;
    int32_t             layer_applications; /* sequential, up to and including this step */
} penelope_trace_step;

/* Called after each latent step on the thread that made the call; everything it is shown is valid during the callback.
 * Return false to end the steps here. It must not call a function of the same session other than
 * penelope_session_cancel(). */
typedef bool (*penelope_trace_callback)(const penelope_trace_step * step, void * user_data);

/* ---- generation ---- */

typedef struct penelope_generate_params {
    int32_t      n_steps;     /* K, latent steps, 0 to the sidecar's k_max; -1: its default; all else is an error */
    int32_t      n_predict;   /* new tokens at most; -1: until the context is full; less is an error */
    const char * method;      /* NULL: the model's default; "cot" answers visibly with the sidecar's LoRA only */
    bool         raw;         /* true: the prompt as it is, without the sidecar's template */
    float        temperature; /* 0: greedy, and the four below do not matter */
    int32_t      top_k;       /* 0: off */
    float        top_p;       /* 1: off */
    float        min_p;       /* 0: off */
    uint64_t     seed;
    /* NULL, or shown the state at the boundary and after each latent step, with the user_data of penelope_generate();
     * when it returns false, the answer is written from that step. Needs a latent method. penelope_trace() has its own.
     */
    penelope_trace_callback on_step;
    bool                    attention; /* show it the attention too; costs another pass of the interval a step */
} penelope_generate_params;

PENELOPE_API penelope_generate_params penelope_generate_default_params(void);

typedef enum penelope_finish {
    PENELOPE_FINISH_STOP = 0, /* the model ended its answer */
    PENELOPE_FINISH_LENGTH,   /* n_predict or the context was reached */
    PENELOPE_FINISH_CANCELLED /* the callback or penelope_session_cancel() stopped it */
} penelope_finish;

typedef struct penelope_answer {
    const char *    text;      /* whole answer, zero-terminated; valid until the session's next call or its end */
    size_t          text_size; /* bytes without the zero */
    const int32_t * tokens;    /* ids as generated, the end token included; valid as long as text */
    size_t          n_tokens;
    int32_t         n_prompt;           /* tokens of the prompt */
    int32_t         n_steps;            /* K as used */
    int32_t         layer_applications; /* sequential, before the first answer token */
    penelope_finish finish;
    double          prompt_ms; /* everything before the first answer token */
    double          decode_ms;
    double          tokens_per_second;
} penelope_answer;

/* Called on the thread of penelope_generate() with each piece of the answer, whole UTF-8 characters, zero-terminated,
 * possibly empty, valid during the call; token is the id that completed it. Return false to stop. It must not call a
 * function of the same session other than penelope_session_cancel(). */
typedef bool (*penelope_token_callback)(const char * text, size_t text_size, int32_t token, void * user_data);

/* Answers one prompt. params NULL: the defaults (greedy, the sidecar's K). on_token and answer may be NULL. Being
 * stopped by the callback or by penelope_session_cancel() is not an error. On failure *answer is zeroed. */
PENELOPE_API penelope_status penelope_generate(penelope_session * session, const char * prompt,
                                               const penelope_generate_params * params,
                                               penelope_token_callback on_token, void * user_data,
                                               penelope_answer * answer);

/* The latent steps of one prompt, without an answer. Uses n_steps, raw and attention of params; NULL: the defaults.
 * Needs a Penelope sidecar. */
PENELOPE_API penelope_status penelope_trace(penelope_session * session, const char * prompt,
                                            const penelope_generate_params * params, penelope_trace_callback on_step,
                                            void * user_data);

#ifdef __cplusplus
}
#endif

#endif
