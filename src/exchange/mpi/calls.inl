// The calls of an MPI library in one ABI. Included once for each of them, in the namespace that
// declares its types and constants: no two of them have the same layout, and none is linked.

/// The library's functions. Source: MPI 3.1, appendix A.2; all ABIs have them.
struct Functions {
  explicit Functions(const Symbols& symbols) {
    symbols.get("MPI_Comm_dup", comm_dup);
    symbols.get("MPI_Comm_free", comm_free);
    symbols.get("MPI_Comm_rank", comm_rank);
    symbols.get("MPI_Comm_set_errhandler", comm_set_errhandler);
    symbols.get("MPI_Comm_size", comm_size);
    symbols.get("MPI_Error_string", error_string);
    symbols.get("MPI_Finalize", finalize);
    symbols.get("MPI_Finalized", finalized);
    symbols.get("MPI_Get_library_version", get_library_version);
    symbols.get("MPI_Init_thread", init_thread);
    symbols.get("MPI_Initialized", initialized);
    symbols.get("MPI_Iprobe", iprobe);
    symbols.get("MPI_Irecv", irecv);
    symbols.get("MPI_Isend", isend);
    symbols.get("MPI_Query_thread", query_thread);
    symbols.get("MPI_Testsome", testsome);
  }

  int (*comm_dup)(Comm, Comm*);
  int (*comm_free)(Comm*);
  int (*comm_rank)(Comm, int*);
  int (*comm_set_errhandler)(Comm, Errhandler);
  int (*comm_size)(Comm, int*);
  int (*error_string)(int, char*, int*);
  int (*finalize)();
  int (*finalized)(int*);
  int (*get_library_version)(char*, int*);
  int (*init_thread)(int*, char***, int, int*);
  int (*initialized)(int*);
  int (*iprobe)(int, int, Comm, int*, Status*);
  int (*irecv)(void*, int, Datatype, int, int, Comm, Request*);
  int (*isend)(const void*, int, Datatype, int, int, Comm, Request*);
  int (*query_thread)(int*);
  int (*testsome)(int, Request*, int*, int*, Status*);
};

/// What a library offers. It is never unloaded.
struct Loaded {
  explicit Loaded(const Symbols& symbols)
      : call(symbols), handle(handles(symbols)), from_fortran(symbols) {}

  std::string error_text(int code) const {
    char text[kMaxErrorString + 1] = {};
    int size = 0;
    if (call.error_string(code, text, &size) != 0) return "error " + std::to_string(code);
    std::string line(text, static_cast<std::size_t>(size));
    while (!line.empty() && line.back() == '\n') line.pop_back();
    std::ranges::replace(line, '\n', ' ');
    return line;
  }
  void check(const char* function, int code) const {
    if (code != 0) throw IoError(std::string(function) + ": " + error_text(code));
  }

  Functions call;
  Handles handle;
  FromFortran from_fortran;
};

class LoadedCommunicator final : public Communicator {
 public:
  LoadedCommunicator(const Loaded& mpi, Comm comm) : mpi_(mpi), comm_(comm) {}

  std::int32_t rank() const override {
    const std::lock_guard lock(calls());
    int rank = 0;
    mpi_.check("MPI_Comm_rank", mpi_.call.comm_rank(comm_, &rank));
    return rank;
  }
  std::int32_t size() const override {
    const std::lock_guard lock(calls());
    int size = 0;
    mpi_.check("MPI_Comm_size", mpi_.call.comm_size(comm_, &size));
    return size;
  }
  std::uintptr_t identity() const noexcept override { return number_of(comm_); }

  std::size_t reserve(std::size_t requests) override {
    const std::size_t before = requests_.size();
    const std::size_t needed = before - unused_.size() + requests;
    if (needed <= before) return before;
    unused_.reserve(needed);
    done_.reserve(needed);
    statuses_.reserve(needed);
    requests_.resize(needed, mpi_.handle.request_null);
    done_.resize(needed);
    statuses_.resize(needed);
    for (std::size_t i = needed; i > before; --i)
      unused_.push_back(static_cast<std::int32_t>(i - 1));
    return needed;
  }

  std::int32_t send(ByteSpan bytes, std::int32_t to, std::int32_t tag) override {
    reserve(1);
    const std::lock_guard lock(calls());
    return begun("MPI_Isend", mpi_.call.isend(bytes.data(), static_cast<int>(bytes.size()),
                                              mpi_.handle.byte, to, tag, comm_, next()));
  }
  std::int32_t receive(std::span<std::byte> bytes, std::int32_t from, std::int32_t tag) override {
    reserve(1);
    const std::lock_guard lock(calls());
    return begun("MPI_Irecv", mpi_.call.irecv(bytes.data(), static_cast<int>(bytes.size()),
                                              mpi_.handle.byte, from, tag, comm_, next()));
  }

  void test(std::vector<Ended>& ended) override {
    ended.reserve(ended.size() + requests_.size());
    const std::lock_guard lock(calls());
    for (Ended& one : refused_) {
      unused_.push_back(one.request);
      ended.push_back(std::move(one));
    }
    refused_.clear();
    for (Status& status : statuses_) status.MPI_ERROR = 0;
    int count = kUndefined;
    const int failed = mpi_.call.testsome(static_cast<int>(requests_.size()), requests_.data(),
                                          &count, done_.data(), statuses_.data());
    if (count == kUndefined || count == 0) return mpi_.check("MPI_Testsome", failed);
    for (int i = 0; i < count; ++i) {
      const int error = failed != 0 ? statuses_[i].MPI_ERROR : 0;
      unused_.push_back(done_[i]);
      ended.push_back({done_[i], error != 0 ? mpi_.error_text(error) : ""});
    }
  }

  std::optional<Found> probe(std::int32_t tag) override {
    const std::lock_guard lock(calls());
    int found = 0;
    Status status{};
    const int failed = mpi_.call.iprobe(kAnySource, tag, comm_, &found, &status);
    if (failed == 0) return found != 0 ? std::optional(Found{status.MPI_SOURCE, ""}) : std::nullopt;
    // One rank that is lost fails the search among all: ask for each, since others may have sent.
    std::optional<Found> lost;
    int ranks = 0;
    mpi_.check("MPI_Comm_size", mpi_.call.comm_size(comm_, &ranks));
    for (std::int32_t rank = 0; rank < ranks; ++rank) {
      const int error = mpi_.call.iprobe(rank, tag, comm_, &found, &status);
      if (error == 0 && found != 0) return Found{rank, ""};
      if (error != 0 && !lost) lost = Found{rank, mpi_.error_text(error)};
    }
    if (!lost) mpi_.check("MPI_Iprobe", failed);
    return lost;
  }

  std::unique_ptr<Communicator> duplicate() const override {
    const std::lock_guard lock(calls());
    Comm copy = mpi_.handle.comm_null;
    mpi_.check("MPI_Comm_dup", mpi_.call.comm_dup(comm_, &copy));
    mpi_.check("MPI_Comm_set_errhandler",
               mpi_.call.comm_set_errhandler(copy, mpi_.handle.errors_return));
    return std::make_unique<LoadedCommunicator>(mpi_, copy);
  }

  void free() noexcept override {
    const std::lock_guard lock(calls());
    mpi_.call.comm_free(&comm_);
  }

 private:
  Request* next() { return &requests_[static_cast<std::size_t>(unused_.back())]; }
  /// Takes the request that `next` gave to `function`.
  std::int32_t begun(const char* function, int error) {
    const std::int32_t request = unused_.back();
    if (error != 0) {
      requests_[request] = mpi_.handle.request_null;
      refused_.push_back({request, std::string(function) + ": " + mpi_.error_text(error)});
    }
    unused_.pop_back();
    return request;
  }

  const Loaded& mpi_;
  Comm comm_;
  std::vector<Request> requests_;     ///< null where none is open
  std::vector<std::int32_t> unused_;  ///< indices of requests_
  std::vector<int> done_;             ///< has the length of requests_, and so have the statuses
  std::vector<Status> statuses_;
  std::vector<Ended> refused_;  ///< requests that MPI did not begin
};

class LoadedLibrary final : public Library {
 public:
  explicit LoadedLibrary(const Symbols& symbols) : mpi_(symbols) {}

  std::string version() const override {
    const std::lock_guard lock(calls());
    std::string text(kMaxLibraryVersion + 1, '\0');
    int size = 0;
    mpi_.check("MPI_Get_library_version", mpi_.call.get_library_version(text.data(), &size));
    text.resize(
        std::min(static_cast<std::size_t>(size), text.find_first_of(std::string("\n\0", 2))));
    std::ranges::replace(text, '\t', ' ');
    return text;
  }
  bool initialized() const override {
    const std::lock_guard lock(calls());
    int yes = 0;
    mpi_.check("MPI_Initialized", mpi_.call.initialized(&yes));
    return yes != 0;
  }
  bool finalized() const override {
    const std::lock_guard lock(calls());
    int yes = 0;
    mpi_.check("MPI_Finalized", mpi_.call.finalized(&yes));
    return yes != 0;
  }
  void initialize() override {
    const std::lock_guard lock(calls());
    int level = 0;
    mpi_.check("MPI_Init_thread",
               mpi_.call.init_thread(nullptr, nullptr, kThreadSerialized, &level));
    mpi_.check("MPI_Comm_set_errhandler",
               mpi_.call.comm_set_errhandler(mpi_.handle.comm_world, mpi_.handle.errors_return));
  }
  void finalize() noexcept override {
    const std::lock_guard lock(calls());
    mpi_.call.finalize();
  }
  bool serializes_threads() const override {
    const std::lock_guard lock(calls());
    int level = 0;
    mpi_.check("MPI_Query_thread", mpi_.call.query_thread(&level));
    return level >= kThreadSerialized;
  }
  std::unique_ptr<Communicator> world() const override {
    return std::make_unique<LoadedCommunicator>(mpi_, mpi_.handle.comm_world);
  }
  std::unique_ptr<Communicator> from_fortran(std::int32_t number) const override {
    const std::lock_guard lock(calls());
    const Comm comm = mpi_.from_fortran(number);
    if (comm == mpi_.handle.comm_null) return nullptr;
    return std::make_unique<LoadedCommunicator>(mpi_, comm);
  }

 private:
  const Loaded mpi_;
};
