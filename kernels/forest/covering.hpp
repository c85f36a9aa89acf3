// How well candidates cover other rows. Distances are whole numbers, whose sums do not depend on the order of addition.
#pragma once

#include <algorithm>
#include <limits>

#include "../arrays.hpp"

namespace quercus::forest {

constexpr int DISTANCE_UNIT = 840;  // from the first to the last ordered code, and between names; has many divisors
constexpr Index AT_ONCE = 78;       // number of attributes whose summed distances fit 16 bits

/// Distances of a row from many others, kept between rows to save allocations.
class Distances {
    Matrix<const int16_t> others;
    OwnedMatrix<uint16_t> columns;
    Vector<const int64_t> ordered;
    std::vector<uint16_t> sum, apart;  // `apart`: distance of each code that occurs from that of the row

   public:
    /// `others` (m, K); `ordered` (K,) number of ordered codes of each attribute, 0 or 1 for names.
    Distances(Matrix<const int16_t> others, Vector<const int64_t> ordered)
        : others(others), columns(others.columns, others.rows), ordered(ordered), sum(others.rows) {
        uint16_t highest = 0;
        for (Index j = 0; j < others.rows; ++j) {
            for (Index k = 0; k < others.columns; ++k) {
                columns(k, j) = static_cast<uint16_t>(others(j, k));
                highest = std::max(highest, columns(k, j));
            }
        }
        apart.resize(highest + 1);
    }

    /// Write the distances of a row (K,), codes from 0 on, from the others into `far` (m,).
    ///
    /// The distance of ordered codes is their difference as a share of the greatest one; that of names is 0 or the
    /// maximum. A missing value, coded after the ordered ones, has the maximum distance from every other code. Loops
    /// over `others` take one attribute at a time, so that vector units compare eight names at once.
    void write_distances(Vector<const int16_t> row, Vector<int32_t> far) {
        const Index K = length(row), m = others.rows;
        for (Index first = 0; first == 0 || first < K; first += AT_ONCE) {
            std::fill(sum.begin(), sum.end(), 0);
            for (Index k = first; k < std::min(first + AT_ONCE, K); ++k) add_attribute(row[k], k);
            for (Index j = 0; j < m; ++j) far[j] = sum[j] + (first ? far[j] : 0);
        }
    }

   private:
    void add_attribute(int16_t x, Index k) {
        const uint16_t* __restrict column = columns[k].data();
        uint16_t* __restrict to = sum.data();
        const Index m = others.rows;
        const int64_t missing = ordered[k];  // the code
        if (missing > 1 && x < missing) {
            uint16_t* __restrict table = apart.data();
            for (Index y = 0; y < length(apart); ++y)
                table[y] = static_cast<uint16_t>(y < missing ? std::abs(x - y) * DISTANCE_UNIT / (missing - 1)
                                                             : DISTANCE_UNIT);
            for (Index j = 0; j < m; ++j) to[j] = static_cast<uint16_t>(to[j] + table[column[j]]);
        } else {
            const auto same = static_cast<uint16_t>(x);
            for (Index j = 0; j < m; ++j)
                to[j] = static_cast<uint16_t>(to[j] + (column[j] != same ? DISTANCE_UNIT : 0));
        }
    }
};

/// Write the distances (n, m) of `rows` (n, K) from `others` (m, K) into `far`.
inline void distances(Matrix<const int16_t> rows, Matrix<const int16_t> others, Vector<const int64_t> ordered,
                      Matrix<int64_t> far) {
    Distances from(others, ordered);
    std::vector<int32_t> line(others.rows);
    for (Index i = 0; i < rows.rows; ++i) {
        from.write_distances(rows[i], line);
        std::copy(line.begin(), line.end(), far[i].begin());
    }
}

/// Return the distance (n,) of each of `rows` (n, K) from the nearest of `others` (m, K); the maximum if m = 0.
inline std::vector<int64_t> nearest_distances(Matrix<const int16_t> rows, Matrix<const int16_t> others,
                                              Vector<const int64_t> ordered) {
    std::vector<int64_t> near(rows.rows);
    Distances from(others, ordered);
    std::vector<int32_t> line(others.rows);
    for (Index i = 0; i < rows.rows; ++i) {
        from.write_distances(rows[i], line);
        auto least = static_cast<int32_t>(DISTANCE_UNIT * rows.columns);
        for (const int32_t distance : line) least = std::min(least, distance);
        near[i] = least;
    }
    return near;
}

/// Return the reduction by a distance, at least 0, if the nearest known row is at `near`.
inline int64_t saving(int64_t near, int64_t far) {
    const int64_t less = near - far;
    return less & ~(less >> 63);
}

/// Return how far each candidate would reduce the rows' distances from known rows: ``Σ_j max(near_j - far_ij, 0)``.
template <class Distance>
std::vector<int64_t> covering_gains(Matrix<const Distance> far, Vector<const int64_t> near) {
    std::vector<int64_t> gain(far.rows);
    for (Index i = 0; i < far.rows; ++i) {
        const Distance* __restrict mine = far[i].data();
        int64_t total = 0;
        for (Index j = 0; j < far.columns; ++j) total += saving(near[j], mine[j]);
        gain[i] = total;
    }
    return gain;
}

struct BestCandidate {
    Index candidate = 0;
    int64_t nearer = 0;         // number of counted rows that are nearer to it than to any known row
    std::vector<double> score;  // (n,) of all candidates
};

/// Return the first candidate whose score is within `tie` of the greatest, and how many `counted` rows it is nearest
/// to.
///
/// The score is the worth (n,) plus `cover` times the gain, as a share of the greatest gain. `lines` (n,) are the
/// candidates' lines in `far` and `gains`, which also have lines of other rows.
template <class Distance>
BestCandidate best_candidate(Matrix<const Distance> far, Vector<const int64_t> near, Vector<const int64_t> gains,
                             Vector<const int64_t> lines, ConstReals worths, Vector<const bool> counted, double cover,
                             double tie) {
    const Index n = length(lines);
    int64_t most = 1;
    for (const int64_t line : lines) most = std::max(most, gains[line]);
    BestCandidate best{.score = std::vector<double>(n)};
    double greatest = -std::numeric_limits<double>::infinity();
    for (Index i = 0; i < n; ++i) {
        best.score[i] = cover * (static_cast<double>(gains[lines[i]]) / static_cast<double>(most)) + worths[i];
        greatest = std::max(greatest, best.score[i]);
    }
    while (best.candidate + 1 < n && !(best.score[best.candidate] >= greatest - tie)) ++best.candidate;
    const Distance* mine = far[lines[best.candidate]].data();
    for (Index j = 0; j < far.columns; ++j) best.nearer += int{counted[j]} & (mine[j] < near[j]);
    return best;
}

/// Update `near` and `gains` for a queried candidate, with the result of computing them anew.
///
/// Gains change only by the rows that are nearer to the candidate than to known rows, so only these are visited; with
/// each query they become fewer. `far` (n, m), `near` (m,) and `gains` (n,) are as in `covering_gains`.
template <class Distance>
void take_candidate(Matrix<const Distance> far, Vector<int64_t> near, Vector<int64_t> gains, Index candidate) {
    std::vector<Index> nearer;
    std::vector<int64_t> before, now;
    for (Index j = 0; j < far.columns; ++j) {
        if (far(candidate, j) >= near[j]) continue;
        nearer.push_back(j);
        before.push_back(near[j]);
        now.push_back(near[j] = far(candidate, j));
    }
    for (Index i = 0; i < far.rows; ++i) {
        const Distance* __restrict mine = far[i].data();
        int64_t less = 0;
        for (std::size_t p = 0; p < nearer.size(); ++p)
            less += saving(before[p], mine[nearer[p]]) - saving(now[p], mine[nearer[p]]);
        gains[i] -= less;
    }
}

}  // namespace quercus::forest
