#include "task/choose_settled.h"

#include "base/error.h"

#include <algorithm>
#include <map>

namespace penelope {

namespace {

constexpr size_t kCandidates = 400; // thresholds tried, spread over the cosines that occur

// A question at every K.
struct Course {
    std::vector<bool>  right;
    std::vector<float> settled; // settled[t] of step t; the first is not asked
};

std::vector<Course> courses_of(const std::vector<Prediction> & predictions) {
    std::map<std::string, std::map<int, const Prediction *>> by_id;
    int                                                      n_most = 0;
    for (const Prediction & p : predictions) {
        by_id[p.id][p.n_steps] = &p;
        n_most                 = std::max(n_most, p.n_steps);
    }
    std::vector<Course> courses;
    for (const auto & [id, by_steps] : by_id) {
        Course course;
        for (int t = 0; t <= n_most; t++) {
            const auto found = by_steps.find(t);
            if (found == by_steps.end()) {
                throw Error(ErrorKind::usage, "question '" + id + "' was not answered at K=" + std::to_string(t),
                            "the threshold is chosen from every K, -K 0-" + std::to_string(n_most));
            }
            course.right.push_back(found->second->correct);
            course.settled.push_back(found->second->settled);
        }
        courses.push_back(std::move(course));
    }
    return courses;
}

size_t stop_of(const Course & course, float threshold) {
    size_t t = 1;
    while (t + 1 < course.right.size() && !(course.settled[t] >= threshold)) {
        t++;
    }
    return std::min(t, course.right.size() - 1);
}

} // namespace

SettledChoice choose_settled(const std::vector<Prediction> & predictions, int n_reference, double tolerance) {
    const std::vector<Course> courses = courses_of(predictions);
    SettledChoice             best;
    std::vector<float>        cosines;
    best.n_reference = n_reference;
    for (const Course & course : courses) {
        best.reference += course.right.at(size_t(n_reference));
        cosines.insert(cosines.end(), course.settled.begin() + 1, course.settled.end());
    }
    const double n = double(std::max<size_t>(1, courses.size()));
    best.reference /= n;
    best.n_taken = double(n_reference);
    best.exact   = best.reference;
    std::sort(cosines.begin(), cosines.end());
    cosines.erase(std::unique(cosines.begin(), cosines.end()), cosines.end());
    const size_t stride = std::max<size_t>(1, cosines.size() / kCandidates);
    for (size_t i = 0; i < cosines.size(); i += stride) {
        const float threshold = cosines[i];
        if (threshold <= 0) {
            continue;
        }
        double exact = 0, n_taken = 0;
        for (const Course & course : courses) {
            const size_t t = stop_of(course, threshold);
            exact += course.right[t];
            n_taken += double(t);
        }
        exact /= n;
        n_taken /= n;
        if (exact >= best.reference - tolerance && (best.threshold == 0 || n_taken < best.n_taken)) {
            best.threshold = threshold;
            best.exact     = exact;
            best.n_taken   = n_taken;
        }
    }
    return best;
}

} // namespace penelope
