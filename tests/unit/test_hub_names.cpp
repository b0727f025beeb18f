// Names of models: what they mean, which files of a repository they choose, and paths in the shared cache.
#include <doctest/doctest.h>

#include "base/hub_path.h"
#include "hub/http.h"
#include "hub/repo_name.h"
#include "support/errors.h"

using namespace penelope;
using penelope::test::error_of;
using Paths = std::vector<std::string>;

TEST_CASE("names of repositories") {
    for (const char * good : { "a/b", "ggml-org/SmolLM2-135M-Instruct-GGUF", "me_1/x.y_z" }) {
        CHECK_MESSAGE(is_repo_id(good), good);
    }
    for (const char * bad : { "", "a", "a/", "/b", "a/b/c", "../b", "a/..", "a/b..c", "-a/b", "a/b-", ".a/b", "a/b.",
                              "a--b/c", "a b/c", "a/b\n", "a\\b/c" }) {
        CHECK_MESSAGE(!is_repo_id(bad), bad);
    }
    const RepoName name = parse_repo_name("me/tiny:q8_0", "-hf");
    CHECK(name.repo == "me/tiny");
    CHECK(name.choice == "q8_0");
    CHECK(parse_repo_name("me/tiny", "-hf").choice.empty());
    for (const char * bad : { "tiny", "me/tiny:", "models/me/tiny.gguf", "" }) {
        CHECK(error_of([&] { parse_repo_name(bad, "-hf"); }).kind == ErrorKind::usage);
    }
}

TEST_CASE("paths in the cache") {
    const std::string commit(40, 'a');
    CHECK(repo_folder_name("me/my-repo") == "models--me--my-repo");
    CHECK(repo_of_folder("models--me--my-repo") == "me/my-repo");
    CHECK(!repo_of_folder("datasets--me--x"));
    CHECK(!repo_of_folder("models--me"));
    const auto path = parse_hub_path("/c/hub/models--me--x/snapshots/" + commit + "/Q8_0/x-00001-of-00002.gguf");
    REQUIRE(path);
    CHECK(path->repo == "me/x");
    CHECK(path->commit == commit);
    CHECK(path->file == "Q8_0/x-00001-of-00002.gguf");
    CHECK(!parse_hub_path("/models/x.gguf"));
    CHECK(!parse_hub_path("/c/hub/models--me--x/blobs/" + commit));
    CHECK(!parse_hub_path("/c/hub/models--me--x/snapshots/main/x.gguf"));
}

TEST_CASE("quantizations in the names of files") {
    CHECK(quant_of("SmolLM2-135M-Instruct-Q4_K_M.gguf") == "Q4_K_M");
    CHECK(quant_of("model.q8_0.gguf") == "Q8_0");
    CHECK(quant_of("Q5_0/model-Q5_0-00001-of-00002.gguf") == "Q5_0");
    CHECK(quant_of("model-bf16.gguf") == "BF16");
    CHECK(quant_of("model.gguf") == "");
    CHECK(quant_of("model-final.gguf") == "");
    CHECK(quant_of("README.md") == "");
}

TEST_CASE("the choice of files") {
    const Paths all = { "README.md",      "mmproj-Q8_0.gguf",           "x-BF16.gguf",
                        "x-Q4_K_M.gguf",  "x-Q8_0-00001-of-00002.gguf", "x-Q8_0-00002-of-00002.gguf",
                        "y/x-IQ4_XS.gguf" };
    CHECK(choose_files(all, "") == Paths{ "x-Q4_K_M.gguf" });
    CHECK(choose_files(all, "q8_0") == Paths{ "x-Q8_0-00001-of-00002.gguf", "x-Q8_0-00002-of-00002.gguf" });
    CHECK(choose_files(all, "iq4_xs") == Paths{ "y/x-IQ4_XS.gguf" });
    CHECK(choose_files(all, "F16").empty());   // not BF16
    CHECK(choose_files(all, "Q4_XS").empty()); // not IQ4_XS
    CHECK(choose_files(all, "y/x-IQ4_XS.gguf") == Paths{ "y/x-IQ4_XS.gguf" });
    CHECK(choose_files(all, "x-Q8_0-00002-of-00002.gguf").size() == 2);
    CHECK(choose_files(all, "mmproj-Q8_0.gguf") == Paths{ "mmproj-Q8_0.gguf" });
    CHECK(choose_files(all, "none.gguf").empty());
    CHECK(choose_files({ "b-Q8_0.gguf", "a-F32.gguf" }, "") == Paths{ "b-Q8_0.gguf" });
    CHECK(choose_files({ "b-Q5_0.gguf", "a-F32.gguf" }, "") == Paths{ "a-F32.gguf" });
    CHECK(choose_files({ "README.md" }, "").empty());
    CHECK(choices_text(all) == "BF16, IQ4_XS, Q4_K_M, Q8_0");
}

TEST_CASE("paths in addresses") {
    CHECK(url_path("a b/c#d?e%.gguf") == "a%20b/c%23d%3Fe%25.gguf");
    CHECK(url_path("\xc3\xa9.gguf") == "%C3%A9.gguf");
}
