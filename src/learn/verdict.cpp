#include "learn/verdict.h"

#include "base/number_text.h"

namespace penelope {

namespace {

bool is_above(const std::optional<PairedDifference> & difference) {
    return difference && difference->low > 0;
}

// ", 4.1 times faster than written steps (95.0 %)", ", as fast as ...", ", slower than ...".
std::string against_visible(const ScoredLine & latent, const ScoredLine & visible) {
    const std::string name  = "written steps (" + percent_text(visible.em) + ")";
    const double      ratio = visible.latency_ms / latent.latency_ms;
    if (!std::isfinite(ratio)) {
        return ", " + name;
    }
    return ratio >= 1.1   ? ", " + with_digits("%.1f", ratio) + " times faster than " + name
           : ratio <= 0.9 ? ", " + with_digits("%.1f", 1 / ratio) + " times slower than " + name
                          : ", as fast as " + name;
}

// ", control 51.2 %"
std::string control_text(const VerdictInput & s) {
    return s.control ? ", control " + percent_text(s.control->em) : "";
}

bool latent_carries(const VerdictInput & s) {
    const bool beats_control = s.control ? is_above(s.control_to_latent) : s.latent->low > s.majority;
    return beats_control && (!s.swapped || is_above(s.swapped_to_latent));
}

// Whether the visible stage learned anything: more than the base and than the majority answer.
bool visible_learned(const VerdictInput & s) {
    return s.visible->low > s.majority && (!s.base || is_above(s.base_to_visible));
}

std::string reference_text(const VerdictInput & s) {
    const std::string base = s.base ? "the base model " + percent_text(s.base->em) + ", " : "";
    return base + "the most frequent answer " + percent_text(s.majority);
}

// Of the base and the visible file, where neither latent steps nor the control are better.
Verdict visible_verdict(const VerdictInput & s, const std::string & reason) {
    const std::string what = s.has_steps ? "written steps" : "answers";
    if (visible_learned(s)) {
        return { BestFile::visible,
                 reason.empty() ? "The model learned the " + what + ": " + percent_text(s.visible->em) + " right, " +
                                      reference_text(s) + "."
                                : reason + " Written steps are right in " + percent_text(s.visible->em) + ", " +
                                      reference_text(s) + ".",
                 s.has_steps ? "Use the written steps." : "Use the trained model." };
    }
    if (s.base && s.base->em >= s.visible->em && s.base->low > s.majority) {
        return { BestFile::base,
                 "Training did not help: " + percent_text(s.visible->em) + " right, " + reference_text(s) + ".",
                 "Use the base model as it is, or give more data or more time." };
    }
    return { BestFile::visible,
             "The data was not learned: " + percent_text(s.visible->em) + " right, " + reference_text(s) + ".",
             "Give more data, more time (--time) or a larger model." };
}

} // namespace

std::string percent_text(double share) {
    return with_digits("%.1f %%", 100 * share);
}

Verdict judge(const VerdictInput & s) {
    if (!s.latent) {
        return visible_verdict(s, "");
    }
    const std::string at_k  = " at K=" + std::to_string(s.n_steps);
    const double      least = s.visible->em - kTolerance;
    if (latent_carries(s)) {
        if (s.latent->em >= least) {
            return { BestFile::latent,
                     "Latent steps carry the answer: " + percent_text(s.latent->em) + at_k +
                         against_visible(*s.latent, *s.visible) + control_text(s) + ".",
                     "Use the latent steps." };
        }
        return { BestFile::visible,
                 "Latent steps carry a part of the answer: " + percent_text(s.latent->em) + at_k + control_text(s) +
                     ", but written steps are right in " + percent_text(s.visible->em) + ".",
                 "Use the written steps; more time (--time) may close the gap." };
    }
    if (s.control && s.control->em >= least && s.control->low > s.majority) {
        return { BestFile::control,
                 "No steps are needed on this data: the answer written at once is right in " +
                     percent_text(s.control->em) + ", with latent steps " + percent_text(s.latent->em) +
                     ", with written steps " + percent_text(s.visible->em) + ".",
                 "Use the model that answers at once." };
    }
    const std::string why =
        s.control
            ? percent_text(s.latent->em) + at_k + ", the same training without them " + percent_text(s.control->em)
            : percent_text(s.latent->em) + at_k + ", the most frequent answer " + percent_text(s.majority);
    return visible_verdict(s, "Latent steps do not help on this data: " + why + ".");
}

} // namespace penelope
