#pragma once

/// Exports a symbol from libembertable.so; all other symbols are hidden.
#define EMBERTABLE_API __attribute__((visibility("default")))
