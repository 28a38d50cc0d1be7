// SPDX-License-Identifier: Apache-2.0

// Package monitoring runs Prometheus with the chart's alerts, lets it scrape an operator, and asks it the queries of the chart's
// dashboards. test/e2e calls it. Prometheus listens on 127.0.0.1, and its files are in a folder of the test.
//
// An alert of the chart fires after minutes or hours. Prometheus records that its condition holds at once, as a pending alert
// (the metric ALERTS), so a test needs no more time than until then.
package monitoring
