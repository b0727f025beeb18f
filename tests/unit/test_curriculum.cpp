// Stages of a run and the order of its examples.
#include "train/batch_sampler.h"
#include "train/curriculum.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <set>

using namespace penelope;

namespace {

// Where an update stands when every one so far had this loss.
StageProgress place_of(const Curriculum & curriculum, int64_t update, double loss = 1) {
    StageProgress progress;
    for (int64_t n_done = 0; n_done < update; n_done++) {
        progress = curriculum.next(progress, n_done);
        progress.add(loss);
    }
    return progress;
}

const Stage & stage_of(const Curriculum & curriculum, int64_t update) {
    return curriculum.at(place_of(curriculum, update));
}

} // namespace

TEST_CASE("the first half in equal blocks of rising depth, the second half at full depth with the answer alone") {
    const Curriculum curriculum(1500, 6, 6);
    REQUIRE(curriculum.stages().size() == 7);
    for (int u = 1; u <= 6; u++) {
        const Stage & stage = curriculum.stages()[size_t(u - 1)];
        CHECK(stage.n_updates() == 125);
        CHECK(stage.n_steps == u);
        CHECK(stage.n_skip_steps == u);
        CHECK(!stage.is_final);
    }
    const Stage & last = curriculum.stages().back();
    CHECK(last.n_updates() == 750);
    CHECK(last.n_steps == 6);
    CHECK(last.n_skip_steps == kAnswerOnly);
    CHECK(last.is_final);
    CHECK(stage_of(curriculum, 1).n_steps == 1);
    CHECK(stage_of(curriculum, 125).n_steps == 1);
    CHECK(stage_of(curriculum, 126).n_steps == 2);
    CHECK(stage_of(curriculum, 750).n_skip_steps == 6);
    CHECK(stage_of(curriculum, 751).n_skip_steps == kAnswerOnly);
    CHECK(stage_of(curriculum, 1500).is_final);
    CHECK(stage_text(stage_of(curriculum, 126)) == "K=2 u=2");
    CHECK(stage_text(stage_of(curriculum, 1500)) == "K=6 answer");
}

TEST_CASE("every update belongs to exactly one stage") {
    for (int64_t n_updates : { 1, 2, 5, 11, 13, 100, 1501 }) {
        for (int depth : { 0, 1, 3, 6, 8 }) {
            CAPTURE(n_updates);
            CAPTURE(depth);
            const Curriculum curriculum(n_updates, depth, depth);
            int64_t          next = 1;
            for (const Stage & stage : curriculum.stages()) {
                CHECK(stage.first == next);
                CHECK(stage.last >= stage.first);
                next = stage.last + 1;
            }
            CHECK(next == n_updates + 1);
            CHECK(curriculum.stages().back().is_final);
            CHECK(curriculum.stages().back().n_steps == depth);
        }
    }
}

TEST_CASE("visible chain of thought has one stage with all steps in the target") {
    const Curriculum curriculum(300, 0, 0);
    REQUIRE(curriculum.stages().size() == 1);
    CHECK(stage_of(curriculum, 1).n_skip_steps == 0);
    CHECK(stage_of(curriculum, 300).is_final);
}

TEST_CASE("the control without latent steps sees the same targets in the same updates") {
    const Curriculum with(1500, 6, 6), without(1500, 6, 0);
    REQUIRE(without.stages().size() == with.stages().size());
    for (size_t i = 0; i < with.stages().size(); i++) {
        const Stage &a = with.stages()[i], &b = without.stages()[i];
        CHECK(b.first == a.first);
        CHECK(b.last == a.last);
        CHECK(b.n_skip_steps == a.n_skip_steps);
        CHECK(b.is_final == a.is_final);
        CHECK(b.n_steps == 0);
    }
    CHECK(stage_text(stage_of(without, 126)) == "K=0 u=2");
}

TEST_CASE("drawn depths: each about as often, the same for the same update, answers asked where they can be reached") {
    const Curriculum curriculum = Curriculum::with_random_k(4000, 8, false);
    REQUIRE(curriculum.stages().size() == 1);
    CHECK(stage_of(curriculum, 1).is_final);
    CHECK(stage_of(curriculum, 1).n_steps == 8); // as it is validated
    CHECK(stage_text(stage_of(curriculum, 1)) == "K=1..8 answer");
    std::vector<int> counts(9, 0);
    for (int64_t update = 1; update <= 4000; update++) {
        const Stage stage = curriculum.draw({}, update, 5);
        REQUIRE(stage.n_steps >= 1);
        REQUIRE(stage.n_steps <= 8);
        counts[size_t(stage.n_steps)]++;
        CHECK(stage.supervises(size_t(stage.n_steps) + 1, 1));
        CHECK_FALSE(stage.supervises(size_t(stage.n_steps) + 2, 1));
        CHECK(stage.n_skip_steps == kAnswerOnly);
    }
    CHECK(*std::min_element(counts.begin() + 1, counts.end()) > 430);
    CHECK(curriculum.draw({}, 7, 5).n_steps == Curriculum::with_random_k(9000, 8, true).draw({}, 7, 5).n_steps);
    CHECK(Curriculum::with_random_k(10, 8, true).draw({}, 3, 5).supervises(100, 1));
}

TEST_CASE(
    "deep: large depths are drawn more often than small ones; without the final pass one step fewer is in reach") {
    const Curriculum curriculum = Curriculum::with_random_k(6400, 8, false, true);
    std::vector<int> counts(9, 0);
    for (int64_t update = 1; update <= 6400; update++) {
        const Stage stage = curriculum.draw({}, update, 5);
        counts[size_t(stage.n_steps)]++;
        CHECK(stage.supervises(size_t(stage.n_steps), 0));
        CHECK_FALSE(stage.supervises(size_t(stage.n_steps) + 1, 0));
    }
    for (int k = 1; k <= 8; k++) { // the larger of two draws is k in 2 k - 1 of 64 cases
        CHECK(std::abs(counts[size_t(k)] - 100 * (2 * k - 1)) < 120);
    }
    CHECK(parse_k_schedule("deep") == KSchedule::deep);
}

TEST_CASE("the control of drawn depths takes no step and asks for every answer") {
    const Curriculum without = Curriculum::with_random_k(10, 0, false);
    CHECK(without.draw({}, 4, 1).n_steps == 0);
    CHECK(without.draw({}, 4, 1).supervises(100, 1));
    CHECK(stage_text(stage_of(without, 4)) == "K=0 answer");
}

TEST_CASE("stages that last until they are learned end as soon as they are, and leave the last one a quarter") {
    Curriculum curriculum(400, 3, 3);
    curriculum.set_advance_loss(0.5);
    // Learned at once: as few updates a stage as make its loss known.
    CHECK(place_of(curriculum, 20, 0.1).stage == 0);
    CHECK(place_of(curriculum, 21, 0.1).stage == 1);
    CHECK(place_of(curriculum, 21, 0.1).start_update == 20);
    CHECK(place_of(curriculum, 61, 0.1).stage == 3);
    CHECK(place_of(curriculum, 400, 0.1).start_update == 60);
    // Never learned: the first stage goes on.
    CHECK(place_of(curriculum, 300, 0.6).stage == 0);
    CHECK(place_of(curriculum, 301, 0.6).stage == 3);
    // The smoothed loss decides: one good update is not enough.
    StageProgress progress = place_of(curriculum, 50, 0.6);
    progress.add(0.1);
    CHECK(curriculum.next(progress, 51).stage == 0);
    progress.add(0.1);
    progress.add(0.1);
    CHECK(curriculum.next(progress, 53).stage == 1);
    CHECK(curriculum.next(progress, 53).loss < 0);
}

TEST_CASE("drawn depths that grow: the largest K rises with what is learned") {
    const Curriculum curriculum = Curriculum::with_growing_k(800, 4, false, 0.5);
    REQUIRE(curriculum.stages().size() == 5);
    CHECK(stage_text(curriculum.stages()[1]) == "K=1..2 answer");
    CHECK(stage_text(curriculum.stages().back()) == "K=1..4 answer");
    std::set<int> with_random_k;
    for (int64_t update = 1; update <= 200; update++) {
        const Stage stage = curriculum.draw(place_of(curriculum, 41, 0.1), update, 3); // the third of them
        with_random_k.insert(stage.n_steps);
        CHECK_FALSE(stage.supervises(size_t(stage.n_steps) + 2, 1));
    }
    CHECK(with_random_k == std::set<int>{ 1, 2, 3 });
}

TEST_CASE("an epoch sees every example once, the next one in another order") {
    BatchSampler        order(103, 4, 9);
    std::vector<size_t> seen;
    for (int64_t update = 1; seen.size() < 2 * 103; update++) {
        for (size_t i : order.batch(update)) {
            seen.push_back(i);
        }
    }
    const auto middle = seen.begin() + 103;
    CHECK(std::set<size_t>(seen.begin(), middle).size() == 103);
    CHECK(std::set<size_t>(middle, middle + 103).size() == 103);
    CHECK(!std::equal(seen.begin(), middle, middle));
    CHECK(order.epochs(103) == doctest::Approx(4.0));
}

TEST_CASE("the order follows from the seed and the number of the update alone") {
    BatchSampler straight(50, 8, 3), later(50, 8, 3), other(50, 8, 4);
    const auto   expected = later.batch(40);
    for (int64_t update = 1; update < 40; update++) {
        straight.batch(update);
    }
    CHECK(straight.batch(40) == expected);
    CHECK(other.batch(40) != expected);
}

TEST_CASE("a minibatch may be larger than the data") {
    BatchSampler              order(3, 7, 1);
    const std::vector<size_t> batch = order.batch(1);
    CHECK(batch.size() == 7);
    CHECK(std::set<size_t>(batch.begin(), batch.begin() + 3).size() == 3);
}
