#include "search.h"

#include <algorithm>
#include <cmath>

namespace chess {
namespace {

constexpr int kSide = 8;
constexpr int kPieces = 6;  // kinds of a player's
constexpr size_t kHistory = 8;
constexpr int kPlanesOfBoard = 2 * kPieces + 1;
// The weight of the priors relative to the values.
constexpr double kExploration = 1.5;

// The board as the other player sees it.
Board turned(const Board& board) {
  Board other{};
  for (int square = 0; square < kSquares; ++square) {
    const int8_t piece = board[static_cast<size_t>(square)];
    const int seen = piece == 0 ? 0 : piece <= kPieces ? piece + kPieces : piece - kPieces;
    other[static_cast<size_t>(kSquares - 1 - square)] = static_cast<int8_t>(seen);
  }
  return other;
}

}  // namespace

Position Position::start() {
  Board board{};
  constexpr std::array<int8_t, kSide> kBack = {4, 2, 3, 5, 6, 3, 2, 4};
  for (size_t file = 0; file < kSide; ++file) {
    board[file] = kBack[file];
    board[kSide + file] = 1;
    board[6 * kSide + file] = 1 + kPieces;
    board[7 * kSide + file] = static_cast<int8_t>(kBack[file] + kPieces);
  }
  return {.boards = {board}, .ply = 0};
}

Position Position::after(int move) const {
  Position next{.boards = {}, .ply = ply + 1};
  Board moved = boards[0];
  const auto from = static_cast<size_t>(move / kSquares);
  moved[static_cast<size_t>(move % kSquares)] = moved[from];
  moved[from] = 0;
  next.boards.push_back(turned(moved));
  for (size_t index = 0; index < boards.size() && next.boards.size() < kHistory; ++index) {
    next.boards.push_back(turned(boards[index]));
  }
  return next;
}

std::vector<int> Position::moves() const {
  const Board& board = boards[0];
  const auto is_own = [&](int square) {
    const int8_t piece = board[static_cast<size_t>(square)];
    return piece > 0 && piece <= kPieces;
  };
  std::vector<int> moves;
  for (int from = 0; from < kSquares; ++from) {
    if (!is_own(from)) continue;
    const int rank = from / kSide;
    const int file = from % kSide;
    for (int to_rank = std::max(0, rank - 1); to_rank <= std::min(kSide - 1, rank + 1); ++to_rank) {
      for (int to_file = std::max(0, file - 1); to_file <= std::min(kSide - 1, file + 1);
           ++to_file) {
        const int to = kSide * to_rank + to_file;
        if (!is_own(to)) moves.push_back(kSquares * from + to);
      }
    }
  }
  return moves;
}

void Position::encode(std::span<float> planes) const {
  std::ranges::fill(planes, 0.0F);
  for (size_t index = 0; index < boards.size(); ++index) {
    for (size_t square = 0; square < kSquares; ++square) {
      const int8_t piece = boards[index][square];
      if (piece == 0) continue;
      const size_t plane = index * kPlanesOfBoard + static_cast<size_t>(piece) - 1;
      planes[plane * kSquares + square] = 1;
    }
  }
  const auto fill = [&](size_t plane, float value) {
    std::ranges::fill(planes.subspan(plane * kSquares, kSquares), value);
  };
  fill(kPlanes - 4, static_cast<float>(ply % 2));
  fill(kPlanes - 3, static_cast<float>(ply) / 100);
  fill(kPlanes - 1, 1);
}

Search::Search(Position root) : root_(std::move(root)), nodes_(1) {}

const std::vector<Position>& Search::collect(size_t count) {
  leaves_.clear();
  paths_.clear();
  while (leaves_.size() < count) {
    std::vector<int> path = {0};
    Position position = root_;
    while (nodes_[static_cast<size_t>(path.back())].children > 0) {
      path.push_back(best_child(path.back()));
      position = position.after(nodes_[static_cast<size_t>(path.back())].move);
    }
    Node& leaf = nodes_[static_cast<size_t>(path.back())];
    if (leaf.is_pending) break;
    leaf.is_pending = true;
    // Until the answer arrives, the path counts as lost, so that the next path differs.
    for (const int index : path) {
      Node& node = nodes_[static_cast<size_t>(index)];
      ++node.visits;
      node.value_sum -= 1;
    }
    paths_.push_back(std::move(path));
    leaves_.push_back(std::move(position));
  }
  return leaves_;
}

void Search::add(std::span<const Answer> answers) {
  for (size_t index = 0; index < answers.size(); ++index) {
    const Answer& answer = answers[index];
    // For the player to move; the node's value is for the one who moved.
    double value =
        static_cast<double>(answer.outcomes[0]) - static_cast<double>(answer.outcomes[2]);
    for (auto node = paths_[index].rbegin(); node != paths_[index].rend(); ++node) {
      value = -value;
      nodes_[static_cast<size_t>(*node)].value_sum += 1 + value;
    }
    expand(paths_[index].back(), leaves_[index], answer);
  }
  answers_ += static_cast<int64_t>(answers.size());
}

int Search::best_child(int index) const {
  const Node& node = nodes_[static_cast<size_t>(index)];
  const double scale = kExploration * std::sqrt(static_cast<double>(node.visits));
  int best = node.first_child;
  double best_score = -1e300;
  for (int child = node.first_child; child < node.first_child + node.children; ++child) {
    const Node& one = nodes_[static_cast<size_t>(child)];
    const auto visits = static_cast<double>(one.visits);
    const double value = one.visits > 0 ? one.value_sum / visits : 0;
    const double score = value + scale * one.prior / (1 + visits);
    if (score > best_score) {
      best_score = score;
      best = child;
    }
  }
  return best;
}

void Search::expand(int index, const Position& position, const Answer& answer) {
  const std::vector<int> moves = position.moves();
  double highest = -1e300;
  for (const int move : moves) {
    highest = std::max(highest, static_cast<double>(answer.policy[static_cast<size_t>(move)]));
  }
  double sum = 0;
  const size_t first = nodes_.size();
  for (const int move : moves) {
    Node child;
    child.move = move;
    child.prior = std::exp(static_cast<double>(answer.policy[static_cast<size_t>(move)]) - highest);
    sum += child.prior;
    nodes_.push_back(child);
  }
  for (size_t child = first; child < nodes_.size(); ++child) nodes_[child].prior /= sum;
  Node& node = nodes_[static_cast<size_t>(index)];
  node.is_pending = false;
  node.first_child = static_cast<int>(first);
  node.children = static_cast<int>(moves.size());
}

int Search::most_visited() const {
  const Node& root = nodes_[0];
  int best = 0;
  for (int child = root.first_child; child < root.first_child + root.children; ++child) {
    const int64_t visits = nodes_[static_cast<size_t>(child)].visits;
    if (visits > (best == 0 ? 0 : nodes_[static_cast<size_t>(best)].visits)) best = child;
  }
  return best;
}

int Search::best_move() const {
  const int best = most_visited();
  return best == 0 ? -1 : nodes_[static_cast<size_t>(best)].move;
}

int64_t Search::best_visits() const {
  const int best = most_visited();
  return best == 0 ? 0 : nodes_[static_cast<size_t>(best)].visits;
}

}  // namespace chess
