#include "train/file_hashes.h"

#include "base/format.h"
#include "base/sha256.h"
#include "gguf/split_name.h"

#include <sys/stat.h>

#include <algorithm>
#include <fstream>

namespace penelope {

namespace {

// Differs between machines and between boots.
std::string boot_id() {
    std::ifstream in("/proc/sys/kernel/random/boot_id");
    std::string   id;
    std::getline(in, id);
    return id;
}

// Equal identities mean the same file. If a file cannot be identified, its identity is the rank.
std::string identity_of(const std::string & path, int rank) {
    const std::string machine    = boot_id();
    struct stat       about      = {};
    const bool        is_unknown = machine.empty() || ::stat(path.c_str(), &about) != 0;
    if (path.empty() || is_unknown) {
        return "rank " + std::to_string(rank);
    }
    const auto text = [](auto number) { return std::to_string(static_cast<long long>(number)) + ":"; };
    return machine + ":" + text(about.st_dev) + text(about.st_ino) + text(about.st_size) + text(about.st_mtim.tv_sec) +
           text(about.st_mtim.tv_nsec);
}

// A model split over several files counts as a whole.
std::string sha256_with_parts(const std::string & path) {
    const std::optional<SplitName> split = parse_split_name(path);
    if (!split) {
        return sha256_file(path);
    }
    std::string sums;
    for (int number = 1; number <= split->count; number++) {
        sums += sha256_file(split_path(split->prefix, number, split->count));
    }
    return sha256_hex(sums);
}

} // namespace

std::vector<std::string> hash_files(Collective & ranks, const std::vector<std::string> & paths,
                                    const std::function<std::string(const std::string & path)> & hash) {
    std::vector<std::string> hashes;
    for (const std::string & path : paths) {
        const std::vector<std::string> identities =
            all_gather_results(ranks, [&] { return identity_of(path, ranks.rank()); });
        const std::string & mine  = identities[size_t(ranks.rank())];
        const size_t        first = size_t(std::find(identities.begin(), identities.end(), mine) - identities.begin());
        const std::vector<std::string> found = all_gather_results(
            ranks, [&] { return !path.empty() && first == size_t(ranks.rank()) ? hash(path) : std::string(); });
        hashes.push_back(path.empty() ? "" : found[first]);
    }
    return hashes;
}

std::vector<std::string> hash_files(Collective & ranks, const std::vector<std::string> & paths) {
    return hash_files(ranks, paths, sha256_with_parts);
}

} // namespace penelope
