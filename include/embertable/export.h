#pragma once

/// Marks what libembertable.so shows; everything else is hidden.
#define EMBERTABLE_API __attribute__((visibility("default")))
