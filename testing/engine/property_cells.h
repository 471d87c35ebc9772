#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace embertable::slow {

/// What the activations of a feature are: S of rank 1, 2 or 3, or sequences [B, L].
enum class Form { kVector, kMatrix, kCube, kSequence };

/// How ids come. kCut: ragged rows that S alone makes sequences of.
enum class Way { kDense, kSparse, kRagged, kCut };
enum class Weights { kNone, kPositive, kMixed, kZeros };

/// One cell of the table but for combiner, replicas and hosts.
struct Cell {
  Form form;
  Way way;
  Weights weights;
  bool empties;  ///< at least one row of the input has no ids
};

/// Every cell, those of one form together.
inline std::vector<Cell> all_cells() {
  std::vector<Cell> cells;
  for (const Form form : {Form::kVector, Form::kMatrix, Form::kCube, Form::kSequence}) {
    const bool sequence = form == Form::kSequence, high = !sequence && form != Form::kVector;
    if (!sequence) cells.push_back({form, Way::kDense, Weights::kNone, false});
    for (const Way way : {Way::kSparse, Way::kRagged, Way::kCut}) {
      if (way == Way::kCut && !high) continue;
      for (const Weights weights :
           {Weights::kNone, Weights::kPositive, Weights::kMixed, Weights::kZeros}) {
        for (const bool empties : {false, true}) cells.push_back({form, way, weights, empties});
      }
    }
  }
  return cells;
}

struct Topology {
  std::int32_t replicas, hosts;
  int steps;
};

/// Topologies with enough steps that each feature of each engine sees ten inputs or more.
constexpr std::array<Topology, 8> kTopologies = {
    {{1, 1, 10}, {2, 1, 5}, {3, 1, 4}, {4, 1, 3}, {2, 2, 5}, {4, 2, 3}, {3, 3, 4}, {5, 5, 3}}};

constexpr int kCombiners = 3;

/// Text of a visit: cell number * kCombiners + combiner.
inline std::string text(std::size_t visited) {
  const Cell cell = all_cells()[visited / kCombiners];
  constexpr const char* kForms[] = {"vector", "matrix", "cube", "sequence"};
  constexpr const char* kWays[] = {"dense", "sparse", "ragged", "cut"};
  constexpr const char* kWeights[] = {"no weights", "weights", "mixed weights", "zero weights"};
  constexpr const char* kNames[] = {"sum", "mean", "sqrtn"};
  return std::string(kForms[static_cast<std::size_t>(cell.form)]) + ", " +
         kWays[static_cast<std::size_t>(cell.way)] + ", " +
         kWeights[static_cast<std::size_t>(cell.weights)] + ", " + kNames[visited % kCombiners] +
         (cell.empties ? ", empty rows" : "");
}

}  // namespace embertable::slow
