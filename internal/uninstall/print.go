// SPDX-License-Identifier: Apache-2.0

package uninstall

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"github.com/karpenter-capi/karpenter-capi/internal/budget"
)

// maxNamed is the number of objects that are named for each kind.
const maxNamed = 10

// ErrNotSafe is the error if something would be left behind.
var ErrNotSafe = errors.New("it is not safe to uninstall the operator now")

// Print prints the findings and what to do. It returns ErrNotSafe if there are any.
func Print(out io.Writer, cluster types.NamespacedName, findings []Finding) error {
	if len(findings) == 0 {
		_, err := fmt.Fprintf(out, "Nothing of the operator for Cluster %s is left: it is safe to uninstall it.\n", cluster)
		return err
	}
	var text strings.Builder
	fmt.Fprintf(&text, "If you uninstall the operator for Cluster %s now, it leaves behind:\n", cluster)
	for _, finding := range findings {
		fmt.Fprintf(&text, "\n%d %s: %s\n  %s\n", len(finding.Names), finding.Kind, budget.Names(finding.Names, maxNamed), finding.Do)
	}
	if _, err := io.WriteString(out, text.String()+"\n"); err != nil {
		return err
	}
	return ErrNotSafe
}
