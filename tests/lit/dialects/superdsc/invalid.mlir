// RUN: not spyre-opt %s 2>&1 | filecheck %s

// CHECK: numWkSlicesPerDim_ gives mb 32 x out 1 = 32 slices, numCoresUsed_ is 16; change a split or the number of cores

superdsc.sdsc @"0_add" splits {mb = 32, out = 1} fields {cores_used = 16} {
}
