// SPDX-License-Identifier: Apache-2.0

package why

// general are the rules for what stops everything.
var general = []Rule{
	{
		Name: "OperatorStopped",
		Seen: "nothing changes: new Pods get no NodeClaims, and NodeClaims stay as they are",
		Do:   "The operator does not run, or cannot reach a cluster. Read its log, and the state of its Pods",
		See:  "docs/troubleshooting.md#the-operator-does-not-start",
		of:   anything,
		find: func(s *subject) (string, error) { return s.view.Stopped(s.ctx), nil },
	},
}
