// A program that is linked with Open MPI and uses it, beside an exchange on a communicator of its
// own and one on the world. It says on standard output what does not hold.
#include <mpi.h>

#include <iostream>
#include <string>

#include "embertable/exchange.h"

namespace {

void expect(bool holds, const char* what) {
  if (!holds) std::cout << "does not hold: " << what << '\n';
}

void use_exchanges(MPI_Comm reversed, int rank, int ranks) {
  const auto mine = embertable::make_mpi_exchange({.communicator = MPI_Comm_c2f(reversed)});
  const auto world = embertable::make_mpi_exchange();
  expect(mine->host() == ranks - 1 - rank, "host h is rank h of the communicator");
  expect(world->host() == rank, "host h is rank h of the world");
  mine->agree("");
  world->agree("");
}

std::string refusal() {
  try {
    embertable::make_mpi_exchange();
  } catch (const embertable::StateError& error) {
    return error.what();
  }
  return "";
}

}  // namespace

int main(int count, char** arguments) {
  const bool serialized = count == 1;
  int level = 0;
  MPI_Init_thread(&count, &arguments, serialized ? MPI_THREAD_SERIALIZED : MPI_THREAD_FUNNELED,
                  &level);
  int rank = 0, ranks = 0, finalized = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  MPI_Comm reversed = MPI_COMM_NULL;
  MPI_Comm_split(MPI_COMM_WORLD, 0, -rank, &reversed);
  if (serialized)
    use_exchanges(reversed, rank, ranks);
  else
    expect(
        refusal().find("is initialised below the level MPI_THREAD_SERIALIZED") != std::string::npos,
        "MPI below that level is refused");
  MPI_Finalized(&finalized);
  expect(finalized == 0, "an exchange leaves MPI alone that it did not initialise");
  MPI_Barrier(MPI_COMM_WORLD);
  return MPI_Finalize();
}
