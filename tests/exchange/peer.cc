// One rank of a job that loses a rank: peer FOLDER POINT kill|stop|throw RANK DEADLINE
//
// All ranks run steps, each of several rounds. In step 3 the rank RANK is killed or stopped, or its
// program throws, when it comes to POINT. One that throws writes to FOLDER/<rank>.end whether MPI
// was finalised at its end. The others write what their exchange throws to FOLDER/<rank> and exit
// with 75.
#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <exception>
#include <fstream>
#include <iostream>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "embertable/exchange.h"
#include "exchange/mpi/loader.h"

namespace {

using embertable::ByteSpan;
using embertable::Channel;
using embertable::Exchange;

class Peer {
 public:
  Peer(Exchange& exchange, std::string point, int signal, std::int32_t victim)
      : exchange_(exchange),
        point_(std::move(point)),
        signal_(signal),
        victim_(victim),
        small_(100),
        large_(std::size_t{3} << 20),
        received_(exchange.hosts()) {}

  void run() {
    for (step_ = 1; step_ < 6; ++step_) {
      at("row numbers");
      start(Channel::kStep, "row numbers", small_);
      finish(Channel::kStep);
      start(Channel::kAhead, "ids", small_);
      at("rows");
      if (point_ == "failure" && step_ == 3 && exchange_.host() == (victim_ == 0 ? 1 : 0)) {
        exchange_.abort("disk full");
        continue;
      }
      at("failure");
      start(Channel::kStep, "rows", large_);
      at("rows open");
      finish(Channel::kStep);
      at("gradients");
      start(Channel::kStep, "gradients", large_);
      finish(Channel::kStep);
      at("ids");
      finish(Channel::kAhead);
      at("agreement");
      exchange_.agree("", {"the end", step_});
    }
  }

 private:
  void at(const std::string& point) const {
    if (step_ != 3 || point != point_ || exchange_.host() != victim_) return;
    if (signal_ == 0) throw std::runtime_error("the program throws");
    ::kill(::getpid(), signal_);
  }
  void start(Channel channel, const char* what, const std::vector<std::byte>& message) {
    const std::vector<ByteSpan> send(received_.size(), message);
    exchange_.start(channel, {what, step_}, send);
  }
  void finish(Channel channel) { exchange_.finish(channel, received_); }

  Exchange& exchange_;
  std::string point_;
  int signal_;  ///< 0: the program throws
  std::int32_t victim_;
  std::int64_t step_ = 0;
  std::vector<std::byte> small_, large_;
  std::vector<ByteSpan> received_;
};

void report(const std::string& file, const std::string& text) {
  std::ofstream(file + ".new") << text;
  ::rename((file + ".new").c_str(), file.c_str());
}

std::string end_file;  ///< "": nothing is to be written at the end

void report_end() {
  if (end_file.empty()) return;
  report(end_file, embertable::mpi::library().finalized() ? "finalized" : "not finalized");
}

}  // namespace

int main(int count, char** arguments) {
  if (count != 6) return 2;
  ::signal(SIGUSR1,
           SIG_IGN);  // MPICH's launcher tells survivors by this signal that a rank was lost
  const std::string how = arguments[3];
  const int signal = how == "kill" ? SIGKILL : how == "stop" ? SIGSTOP : 0;
  std::string file;
  std::atexit(report_end);  // before the exchange's own function, which runs first then
  try {
    const auto exchange =
        embertable::make_mpi_exchange({.deadline_seconds = std::atof(arguments[5])});
    file = std::string(arguments[1]) + "/" + std::to_string(exchange->host());
    try {
      Peer(*exchange, arguments[2], signal, std::atoi(arguments[4])).run();
      report(file, "nothing was thrown");
    } catch (const embertable::StateError& error) {
      std::string text = error.what();
      try {
        exchange->agree("");
      } catch (const embertable::StateError& again) {
        if (again.what() != text) text += "\nand then: " + std::string(again.what());
      }
      report(file, text);
    }
  } catch (const std::exception& error) {
    if (how == "throw") end_file = file + ".end";
    std::cerr << "peer: " << error.what() << '\n';
    return 1;
  }
  std::this_thread::sleep_for(
      std::chrono::seconds(1));  // launchers end the job with its first rank
  return 75;
}
