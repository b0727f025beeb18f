#include "task/calibrate_halting.h"

#include "base/error.h"

#include <algorithm>
#include <map>

namespace penelope {

namespace {

constexpr size_t kCandidates = 400; // thresholds tried, spread over the cosines that occur

// A question at every K.
struct KSweep {
    std::vector<bool>  right;
    std::vector<float> settled; // settled[t] of step t; the first is not asked
};

std::vector<KSweep> sweeps_of(const std::vector<Prediction> & predictions) {
    std::map<std::string, std::map<int, const Prediction *>> by_id;
    int                                                      n_most = 0;
    for (const Prediction & p : predictions) {
        by_id[p.id][p.n_steps] = &p;
        n_most                 = std::max(n_most, p.n_steps);
    }
    std::vector<KSweep> sweeps;
    for (const auto & [id, by_steps] : by_id) {
        KSweep sweep;
        for (int t = 0; t <= n_most; t++) {
            const auto found = by_steps.find(t);
            if (found == by_steps.end()) {
                throw Error(ErrorKind::usage, "question '" + id + "' has no answer at K=" + std::to_string(t),
                            "calibration needs every K: -K 0-" + std::to_string(n_most));
            }
            sweep.right.push_back(found->second->correct);
            sweep.settled.push_back(found->second->step_cosine);
        }
        sweeps.push_back(std::move(sweep));
    }
    return sweeps;
}

size_t halting_step(const KSweep & sweep, float threshold) {
    size_t t = 1;
    while (t + 1 < sweep.right.size() && !(sweep.settled[t] >= threshold)) {
        t++;
    }
    return std::min(t, sweep.right.size() - 1);
}

} // namespace

HaltingCalibration calibrate_halting(const std::vector<Prediction> & predictions, int n_reference, double tolerance) {
    const std::vector<KSweep> sweeps = sweeps_of(predictions);
    HaltingCalibration        best;
    std::vector<float>        cosines;
    best.n_reference = n_reference;
    for (const KSweep & sweep : sweeps) {
        best.reference += sweep.right.at(size_t(n_reference));
        cosines.insert(cosines.end(), sweep.settled.begin() + 1, sweep.settled.end());
    }
    const double n = double(std::max<size_t>(1, sweeps.size()));
    best.reference /= n;
    best.n_steps_taken = double(n_reference);
    best.exact         = best.reference;
    std::sort(cosines.begin(), cosines.end());
    cosines.erase(std::unique(cosines.begin(), cosines.end()), cosines.end());
    const size_t stride = std::max<size_t>(1, cosines.size() / kCandidates);
    for (size_t i = 0; i < cosines.size(); i += stride) {
        const float threshold = cosines[i];
        if (threshold <= 0) {
            continue;
        }
        double exact = 0, n_steps_taken = 0;
        for (const KSweep & sweep : sweeps) {
            const size_t t = halting_step(sweep, threshold);
            exact += sweep.right[t];
            n_steps_taken += double(t);
        }
        exact /= n;
        n_steps_taken /= n;
        if (exact >= best.reference - tolerance && (best.threshold == 0 || n_steps_taken < best.n_steps_taken)) {
            best.threshold     = threshold;
            best.exact         = exact;
            best.n_steps_taken = n_steps_taken;
        }
    }
    return best;
}

} // namespace penelope
