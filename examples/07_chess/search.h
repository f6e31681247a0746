// A search as an engine for chess does it: a tree of positions (PUCT, as in AlphaZero), of which
// each batch of leaves is evaluated by a network. The game has the board and the network's inputs
// of chess, but simpler rules: every piece moves like a king, and nobody wins.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

namespace chess {

constexpr int kSquares = 64;
constexpr int kPlanes = 112;
constexpr int kInputElements = kPlanes * kSquares;
constexpr int kOutcomes = 3;  // win, draw, loss

// The squares from the side of the player to move: 0 is empty, 1 to 6 are his pieces, 7 to 12 the
// other's.
using Board = std::array<int8_t, kSquares>;

struct Position {
  std::vector<Board> boards;  // the newest first, at most eight
  int ply = 0;                // moves since the start

  // The start position of chess, with white to move.
  static Position start();
  // The position as the other player sees it after the move.
  Position after(int move) const;
  // The possible moves, each as 64 * from square + to square.
  std::vector<int> moves() const;
  // Writes the network's input: for each of eight boards, newest first, twelve planes of pieces and
  // an empty one; then planes that are equal on all squares.
  void encode(std::span<float> planes) const;
};

// The network's answers for one position.
struct Answer {
  std::span<const float> policy;    // for each move, before softmax
  std::span<const float> outcomes;  // kOutcomes probabilities, for the player to move
};

// The tree of one thread.
class Search {
 public:
  explicit Search(Position root);

  // Chooses up to `count` leaves whose answers are worth most, and marks them, so that the paths of
  // one batch differ. There are fewer if a path leads to a leaf that is chosen already. The
  // references are valid until add().
  const std::vector<Position>& collect(size_t count);
  // The answers for the leaves of the newest collect(), in their order.
  void add(std::span<const Answer> answers);

  // The number of answers that the tree has.
  int64_t answers() const { return answers_; }
  // The most frequently examined move from the root, and its count; -1 before two answers.
  int best_move() const;
  int64_t best_visits() const;

 private:
  struct Node {
    int move = 0;  // that leads here
    double prior = 0;
    double value_sum = 0;  // for the player who made the move
    int64_t visits = 0;
    int first_child = 0;
    int children = 0;  // 0: a leaf
    bool is_pending = false;
  };

  int best_child(int node) const;
  int most_visited() const;
  void expand(int node, const Position& position, const Answer& answer);

  Position root_;
  std::vector<Node> nodes_;
  std::vector<std::vector<int>> paths_;  // of the pending leaves, from the root
  std::vector<Position> leaves_;
  int64_t answers_ = 0;
};

}  // namespace chess
