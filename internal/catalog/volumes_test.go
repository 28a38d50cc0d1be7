// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/karpenter/pkg/cloudprovider"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
)

// Karpenter plans with what is declared, and with what Nodes report instead.
func TestVolumesOfAType(t *testing.T) {
	type limits = map[string]int
	for name, tc := range map[string]struct {
		declared, observed map[string]int32
		want               limits
	}{
		"nothing":                     {},
		"declared":                    {declared: map[string]int32{"a": 26}, want: limits{"a": 26}},
		"observed":                    {observed: map[string]int32{"a": 24}, want: limits{"a": 24}},
		"observed instead":            {declared: map[string]int32{"a": 26}, observed: map[string]int32{"a": 24}, want: limits{"a": 24}},
		"each driver by itself":       {declared: map[string]int32{"a": 26}, observed: map[string]int32{"b": 4}, want: limits{"a": 26, "b": 4}},
		"none can be attached at all": {declared: map[string]int32{"a": 0}, want: limits{"a": 0}},
	} {
		t.Run(name, func(t *testing.T) {
			instanceType := m5large()
			instanceType.VolumeAttachmentLimits = tc.declared
			input := template()
			if tc.observed != nil {
				input.Status.ObservedCapacity = []v1alpha1.ObservedCapacity{{InstanceType: "m5.large", Revision: RevisionOf(input), Nodes: 1, VolumeAttachmentLimits: tc.observed}}
			}
			built, err := build(input, instanceType)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, built[0].VolumeAttachmentLimits); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestWrongVolumes(t *testing.T) {
	for _, tc := range []struct {
		driver string
		limit  int32
		want   string
	}{
		{"ebs.csi.aws.com", -1, "volumeAttachmentLimits.ebs.csi.aws.com must be 0 or more, found -1"},
		{"", 1, `expected the name of a CSI driver, such as ebs.csi.aws.com, found ""`},
		{"a_b", 1, `found "a_b"`},
		{strings.Repeat("a", 64), 1, "expected the name of a CSI driver"},
	} {
		instanceType := m5large()
		instanceType.VolumeAttachmentLimits = map[string]int32{tc.driver: tc.limit}
		if built, err := build(template(), instanceType); err == nil || !strings.Contains(err.Error(), tc.want) || len(built) > 0 {
			t.Errorf("%q: got %d instance types and %v, want none and %q", tc.driver, len(built), err, tc.want)
		}
	}
}

// The annotation of cluster-autoscaler describes the volumes of discovered types.
func TestVolumesOfAnAnnotation(t *testing.T) {
	for text, want := range map[string]map[string]int32{
		"":                                      nil,
		"ebs.csi.aws.com=25":                    {"ebs.csi.aws.com": 25},
		" ebs.csi.aws.com = 25, x=0 ,":          {"ebs.csi.aws.com": 25, "x": 0},
		"ebs.csi.aws.com=25,efs.csi.aws.com=16": {"ebs.csi.aws.com": 25, "efs.csi.aws.com": 16},
	} {
		got, err := fromInfrastructure(infrastructureTemplate("large", map[string]string{volumesAnnotation: text}), estimated)
		if diff := cmp.Diff(want, got.VolumeAttachmentLimits); err != nil || diff != "" {
			t.Errorf("%q: %v (-want +got):\n%s", text, err, diff)
		}
	}
	for _, text := range []string{"ebs.csi.aws.com", "ebs.csi.aws.com=", "ebs.csi.aws.com=many", "ebs.csi.aws.com=-1", "=3", "a_b=3", "a=99999999999"} {
		_, err := fromInfrastructure(infrastructureTemplate("large", map[string]string{volumesAnnotation: text}), estimated)
		if err == nil || !strings.Contains(err.Error(), volumesAnnotation) || !strings.Contains(err.Error(), text) {
			t.Errorf("%q: got %v, want an error that names the annotation and its value", text, err)
		}
	}
}

// Catalogs and discovered objects can contradict each other in volumes as in capacity.
func TestVolumesContradict(t *testing.T) {
	one, other := m5large(), m5large()
	one.VolumeAttachmentLimits, other.VolumeAttachmentLimits = map[string]int32{"a": 26, "b": 4}, map[string]int32{"a": 25}
	other.Offerings = []v1alpha1.Offering{{Zones: []v1alpha1.Zone{"z"}, Price: "1"}}
	second := listed(other)
	second.Name = "more"
	types, problems := TypesOf(template(), nil, listed(one), second)
	if len(types) > 0 || len(problems) != 1 {
		t.Fatalf("got %d types and %v, want none and one problem", len(types), problems)
	}
	for _, want := range []string{"volumeAttachmentLimits.a: 26 instead of 25", "volumeAttachmentLimits.b: 4 instead of none"} {
		if !strings.Contains(problems[0].Message, want) {
			t.Errorf("got %q, want %q", problems[0].Message, want)
		}
	}
}

// Copies of instance types, with other requirements or offerings, keep everything that Karpenter reads of them.
func TestCopiesAreComplete(t *testing.T) {
	built, err := build(template(), m5large())
	if err != nil {
		t.Fatal(err)
	}
	original := built[0]
	original.VolumeAttachmentLimits = map[string]int{"a": 26}
	original.DynamicResources.AttributeBindings = []*cloudprovider.AttributeBinding{{}}
	for name, instanceTypes := range map[string][]*cloudprovider.InstanceType{
		"without a requirement":  without(built, []string{"example.com/none"}),
		"with a closed offering": overlay{closed: []Key{{"m5.large", "a", "spot"}}}.apply(built),
	} {
		before, after := reflect.ValueOf(original).Elem(), reflect.ValueOf(instanceTypes[0]).Elem()
		if original == instanceTypes[0] {
			t.Fatalf("%s: it is not a copy", name)
		}
		for i := range before.NumField() {
			if field := before.Type().Field(i); field.IsExported() {
				if before.Field(i).IsZero() {
					t.Errorf("%s: set field %s in this test", name, field.Name)
				}
				if after.Field(i).IsZero() {
					t.Errorf("%s: field %s is lost", name, field.Name)
				}
			}
		}
	}
}
