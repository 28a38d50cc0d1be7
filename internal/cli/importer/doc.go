// SPDX-License-Identifier: Apache-2.0

// Package importer makes InstanceTypeCatalogs from what the command lines of clouds print, and
// from CSV files. The plugin kubectl karpenter-capi calls it.
//
// Each format has a reader in a file of its own: it recognizes its files by their content and
// returns an inventory, which is the machines with their offers in common terms. Import then does
// what all formats have in common: it filters the machines, subtracts the memory allowance, joins
// offers of the same price, and checks the catalog. Everything is pure: the same files and options
// give the same catalog. There is no catalog unless all of the input is valid.
//
// An entry that cannot be a node by its nature, such as a macOS machine or a type without a price
// in the region, is left out and counted in Result.Skipped. An entry that contradicts its format
// is an error, because the file is probably damaged or another one than the user thinks.
package importer
