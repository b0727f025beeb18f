#include "latent/trajectory.h"

#include "latent/readout.h"
#include "latent/refine.h"

namespace penelope {

void refine_once(Graph & g, const Backbone & model, const PenelopeModules & modules, const LatentShape & shape,
                 const TimeStep & step, const RowLayout & memory_rows, SequenceState & kv, Trajectory & trajectory) {
    const int t        = int(trajectory.memory.size());
    Node      memory   = trajectory.memory.back();
    Node      features = interval_features(g, model, shape, step, memory, memory_rows, kv);
    if (shape.transition == Transition::gru) {
        Node modulated = modulate(g, modules, step, features);
        memory         = update_memory(g, modules, step, modulated, memory);
        trajectory.modulated.push_back(g.named(modulated, "latent.%d.modulated", t));
    } else {
        memory = features;
    }
    Node proposal = readout_proposal(g, modules, shape, step, features);
    Node readout  = update_readout(g, modules, proposal, trajectory.readout.back());

    trajectory.features.push_back(features);
    trajectory.memory.push_back(memory);
    trajectory.proposal.push_back(g.named(proposal, "latent.%d.proposal", t));
    trajectory.readout.push_back(g.named(readout, "latent.%d.readout", t));
    g.expand(memory);
    g.expand(readout);
}

Trajectory build_trajectory(Graph & g, const Backbone & model, const PenelopeModules & modules,
                            const LatentShape & shape, const std::vector<TimeStep> & steps, int n_steps, Node prompt,
                            Node target, int n_sequences, const TrajectoryRows & rows, SequenceState & kv) {
    const Boundary start = boundary(g, model, modules, shape, prompt, target, n_sequences, rows.all, kv);
    // All of them at once: the prompt's keys and values of the lower layers are then free.
    std::vector<Node> gold;
    for (const GoldRows & step : rows.gold) {
        gold.push_back(gold_memory(g, model, modules, shape, step, rows.memory, kv));
    }
    Node prompt_out = prompt_cache(g, model, shape, start.prompt, rows.prompt, kv);

    Trajectory trajectory{};
    trajectory.prompt = start.prompt;
    trajectory.memory.push_back(start.memory);
    trajectory.readout.push_back(start.readout);
    for (int t = 1; t <= n_steps; t++) {
        refine_once(g, model, modules, shape, steps[size_t(t - 1)], rows.memory, kv, trajectory);
        if (size_t(t) <= gold.size()) {
            trajectory.memory.back() =
                replace_memory(g, rows.gold[size_t(t - 1)], trajectory.memory.back(), gold[size_t(t - 1)]);
        }
        g.add_abort_point(trajectory.readout.back());
    }

    Node interface_target = join_interface(g, shape, trajectory.memory.back(), trajectory.readout.back());
    if (target) {
        interface_target = concat_rows(g, { interface_target, start.target });
    }
    trajectory.output =
        final_pass(g, model, shape, interface_target, prompt_out, rows.interface_target, rows.all, kv, rows.output);
    return trajectory;
}

} // namespace penelope
