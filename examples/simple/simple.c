/*
 * The smallest useful program on penelope.h: loads a model, answers one question while it is being generated, and shows
 * what the answer cost.
 *
 *     simple BASE.gguf "question" [SIDECAR.gguf [K]]
 */
#include <penelope.h>

#include <stdio.h>
#include <stdlib.h>

static bool print_piece(const char * text, size_t text_size, int32_t token, void * user_data) {
    (void) token;
    (void) user_data;
    fwrite(text, 1, text_size, stdout);
    fflush(stdout);
    return true;
}

static int fail(void) {
    fprintf(stderr, "error: %s\n", penelope_error_message());
    if (penelope_error_hint()[0] != '\0') {
        fprintf(stderr, "hint: %s\n", penelope_error_hint());
    }
    return EXIT_FAILURE;
}

int main(int argc, char ** argv) {
    if (argc < 3 || argc > 5) {
        fprintf(stderr, "usage: %s BASE.gguf QUESTION [SIDECAR.gguf [K]]\n", argv[0]);
        return 2;
    }

    penelope_model_params model_params = penelope_model_default_params();
    model_params.base_path             = argv[1];
    model_params.sidecar_path          = argc > 3 ? argv[3] : NULL;

    penelope_generate_params params = penelope_generate_default_params();
    params.n_predict                = 64;
    params.n_steps                  = argc > 4 ? atoi(argv[4]) : -1;

    penelope_model *   model   = NULL;
    penelope_session * session = NULL;
    penelope_answer    answer;
    int                code = EXIT_SUCCESS;
    if (penelope_model_load(&model_params, &model) != PENELOPE_OK ||
        penelope_session_new(model, NULL, &session) != PENELOPE_OK ||
        penelope_generate(session, argv[2], &params, print_piece, NULL, &answer) != PENELOPE_OK) {
        code = fail();
    } else {
        printf("\n");
        fprintf(stderr, "%d prompt tokens, K = %d, %d layer applications, %.1f ms before the answer, %.1f tokens/s\n",
                (int) answer.n_prompt, (int) answer.n_steps, (int) answer.layer_applications, answer.prompt_ms,
                answer.tokens_per_second);
    }

    penelope_session_free(session);
    penelope_model_free(model);
    return code;
}
