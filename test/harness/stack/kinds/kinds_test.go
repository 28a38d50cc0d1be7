// SPDX-License-Identifier: Apache-2.0

package kinds

import (
	"flag"
	"io"
	"testing"
)

func TestSet(t *testing.T) {
	for name, tc := range map[string]struct {
		args    []string
		want    Kind
		wantErr string
	}{
		"by default":      {want: MachineDeployment},
		"another":         {args: []string{"-kind", "MachinePool"}, want: MachinePool},
		"an unknown kind": {args: []string{"-kind", "machinepool"}, want: MachineDeployment, wantErr: `invalid value "machinepool" for flag -kind: there is no such kind of scalable resource: MachineDeployment or MachinePool`},
		"none":            {args: []string{"-kind", ""}, want: MachineDeployment, wantErr: `invalid value "" for flag -kind: there is no such kind of scalable resource: MachineDeployment or MachinePool`},
	} {
		t.Run(name, func(t *testing.T) {
			flags := flag.NewFlagSet("", flag.ContinueOnError)
			flags.SetOutput(io.Discard)
			got := MachineDeployment
			flags.Var(&got, "kind", Usage)
			err := flags.Parse(tc.args)
			if got != tc.want {
				t.Errorf("kind = %s, want %s", got, tc.want)
			}
			if (err == nil) != (tc.wantErr == "") || err != nil && err.Error() != tc.wantErr {
				t.Errorf("error = %v, want %q", err, tc.wantErr)
			}
		})
	}
}

func TestManifests(t *testing.T) {
	const written = "scalableResource: {kind: MachineDeployment}\nkind: SimulatedMachineTemplate\nkind: Deployment\n"
	for kind, want := range map[Kind]string{
		MachineDeployment: written,
		MachinePool:       "scalableResource: {kind: MachinePool}\nkind: SimulatedMachinePoolTemplate\nkind: Deployment\n",
	} {
		if got := string(kind.Manifests([]byte(written))); got != want {
			t.Errorf("%s: got %q, want %q", kind, got, want)
		}
	}
}
