// A project outside the repository that finds the installed package: tests/install_test.py.

#include "embertable/embertable.h"

int main() { return 0; }
