// The files of a `penelope learn` run: where each is, and the one the verdict prefers.
#pragma once

#include "learn/recipe.h"
#include "learn/scorer.h"
#include "learn/verdict.h"

#include <string>
#include <vector>

namespace penelope {

class RunFiles {
  public:
    // base: the backbone that training starts from. is_full: stages train all weights; else a LoRA. has_bridge: latent
    // and control start from the bridge, else from the visible stage.
    RunFiles(std::string out, std::string base, bool is_full, bool has_bridge)
        : out_(std::move(out)), base_(std::move(base)), is_full_(is_full), has_bridge_(has_bridge) {}

    std::string state() const { return file("learn.json"); }
    std::string data() const { return file("data"); }
    std::string new_backbone() const { return file("base.gguf"); }
    std::string scores() const { return file("scores"); }
    std::string scratch() const { return file("probe"); }
    std::string model() const { return file("model.gguf"); }
    std::string report() const { return file("report.html"); }
    std::string halting_sidecar() const { return file("scores/latent.gguf"); } // latent/model.gguf with -K auto
    std::string folder(LearnStage stage) const { return file(stage_name(stage)); }
    std::string file(const std::string & name) const;

    // Where a stage starts: backbone and LoRA.
    void set_start(LearnStage stage, TrainSettings & settings) const;

    ModelFiles base_files() const { return { base_, "", "" }; }
    ModelFiles stage_files(LearnStage stage) const; // of a finished stage

    // Writes model(): a backbone or bundle that runs alone, else the sidecar or LoRA for the base. Nothing for the base
    // itself.
    void write_model(BestFile best) const;

    // Commands to chat with, serve, quantize and share what write_model() wrote.
    std::vector<std::string> commands(BestFile best) const;

    // Removes what a run writes.
    void remove_all() const;

  private:
    std::string out_, base_;
    bool        is_full_, has_bridge_;
};

} // namespace penelope
