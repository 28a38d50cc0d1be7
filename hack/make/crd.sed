# SPDX-License-Identifier: Apache-2.0

# What controller-gen writes for quantities and times accepts values that no client can decode, and one such object
# makes every list of its kind fail: see api/v1alpha1/decoding_test.go.

# A quantity has an exponent of at most two digits that is a whole number: neither 1e1.5 nor 1e2147483648.
s/^( *)pattern: \^\(\\\+\|-\)\?\(\(\[0-9\]\+.*KMGTPE.*eE.*$/\1pattern: ^[-+]?([0-9]{1,30}(\\.[0-9]{0,30})?|\\.[0-9]{1,30})([KMGTPE]i|[numkMGTPE]|[eE][-+]?[0-9]{1,2})?$/

# A time has upper case letters and is in UTC. If format stands beside type, the API server accepts lists, too.
s/^( *)format: date-time$/\1allOf:\n\1- format: date-time\n\1pattern: ^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:]{8}(\\.[0-9]{1,9})?Z$/
