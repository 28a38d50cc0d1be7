// SPDX-License-Identifier: Apache-2.0

package aws

import (
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
)

const types = `{"InstanceTypes": [{"InstanceType": "m6i.large", "ProcessorInfo": {"SupportedArchitectures": ["x86_64"]},
	"VCpuInfo": {"DefaultVCpus": 2}, "MemoryInfo": {"SizeInMiB": 8192}}]}`

func start(t *testing.T) *Cloud {
	t.Helper()
	c, err := Start([]byte(types))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Stop)
	return c
}

// send sends a request of the query protocol, with parameters such as A=1&B=2.
func send(t *testing.T, c *Cloud, query string) (int, string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+c.listener.Addr().String(), strings.NewReader(query))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	return do(t, request)
}

func do(t *testing.T, request *http.Request) (int, string) {
	t.Helper()
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close() //nolint:errcheck // It was read.
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(body)
}

// expect sends a request, and expects a text in the answer.
func expect(t *testing.T, c *Cloud, query string, status int, text string) {
	t.Helper()
	if got, answer := send(t, c, query); got != status || !strings.Contains(answer, text) {
		t.Errorf("%s: got %d %s, want %d with %s", query, got, answer, status, text)
	}
}

const (
	ec2         = "Version=2016-11-15&Action="
	autoScaling = "Version=2011-01-01&Action="
	spotIn      = ec2 + "RunInstances&ImageId=ami-0000000000000amd4&InstanceType=m6i.large&NetworkInterface.1.SubnetId=subnet-0b" +
		"&InstanceMarketOptions.MarketType=spot&BlockDeviceMapping.1.DeviceName=%2Fdev%2Fsda1&BlockDeviceMapping.1.Ebs.VolumeSize=80" +
		"&TagSpecification.1.ResourceType=instance&TagSpecification.1.Tag.1.Key=Name&TagSpecification.1.Tag.1.Value=first"
)

func TestInstances(t *testing.T) {
	c := start(t)
	pool := Pool{InstanceType: "m6i.large", Zone: "us-east-1b", Spot: true}
	expect(t, c, spotIn, http.StatusOK, "<name>pending</name>")
	c.Exhaust(pool)
	expect(t, c, spotIn, http.StatusInternalServerError, "<Code>InsufficientInstanceCapacity</Code><Message>There is no Spot capacity available")
	c.Exhaust()
	c.Deny("not you")
	expect(t, c, spotIn, http.StatusForbidden, "<Code>UnauthorizedOperation</Code><Message>not you</Message>")
	c.Deny("")
	expect(t, c, strings.ReplaceAll(spotIn, "amd4", "arm4"), http.StatusBadRequest, "<Code>InvalidParameterValue</Code>")
	expect(t, c, strings.ReplaceAll(spotIn, "subnet-0b", "subnet-0z"), http.StatusBadRequest, "<Code>InvalidSubnetID.NotFound</Code>")
	instances := c.Instances()
	if len(instances) != 1 || instances[0].Pool != pool || instances[0].DiskGiB != 80 {
		t.Fatalf("the instances are %+v", instances)
	}
	id := instances[0].ID
	named := ec2 + "DescribeInstances&Filter.1.Name=tag%3AName&Filter.1.Value.1="
	expect(t, c, named+"first", http.StatusOK, "<name>running</name>")
	if _, answer := send(t, c, named+"second"); strings.Contains(answer, id) {
		t.Errorf("instances by another name: %s", answer)
	}
	expect(t, c, ec2+"DescribeInstances&InstanceId.1=i-1", http.StatusBadRequest, "<Code>InvalidInstanceID.NotFound</Code>")
	expect(t, c, ec2+"TerminateInstances&InstanceId.1="+id, http.StatusOK, "")
	expect(t, c, ec2+"DescribeInstances&InstanceId.1="+id, http.StatusOK, "<name>terminated</name>")
	if left := c.Instances(); len(left) != 0 {
		t.Errorf("left: %+v", left)
	}
}

func TestImages(t *testing.T) {
	c := start(t)
	find := ec2 + "DescribeImages&Filter.1.Name=architecture&Filter.1.Value.1=arm64&Filter.2.Name=name&Filter.2.Value.1="
	expect(t, c, find+url.QueryEscape("capa-ami-ubuntu-24.04-?1.36.3-*"), http.StatusOK, "<imageId>ami-0000000000000arm4</imageId>")
	if _, answer := send(t, c, find+url.QueryEscape("capa-ami-ubuntu-24.04-?1.35.0-*")); strings.Contains(answer, "imageId") {
		t.Errorf("images of another version: %s", answer)
	}
	expect(t, c, ec2+"DescribeInstanceTypes&InstanceType.1=m6i.large", http.StatusOK, "<defaultVCpus>2</defaultVCpus>")
	expect(t, c, ec2+"DescribeSpotPrices", http.StatusNotImplemented, "")
	if unknown := c.Unknown(); len(unknown) != 1 || unknown[0] != "DescribeSpotPrices" {
		t.Errorf("unknown requests: %v", unknown)
	}
}

// A group has as many instances as it should have, whatever happens to them, and tries again when AWS has refused one.
func TestGroups(t *testing.T) {
	c := start(t)
	template := strings.ReplaceAll(strings.TrimPrefix(spotIn, ec2+"RunInstances&"), "&", "&LaunchTemplateData.")
	expect(t, c, ec2+"CreateLaunchTemplate&LaunchTemplateName=pool&LaunchTemplateData."+template, http.StatusOK, "<launchTemplateId>")
	latest := ec2 + "DescribeLaunchTemplateVersions&LaunchTemplateName=pool&LaunchTemplateVersion.1=%24Latest"
	expect(t, c, latest, http.StatusOK, "<instanceMarketOptions><marketType>spot</marketType></instanceMarketOptions>")
	var id string
	for id = range c.templates {
	}
	expect(t, c, ec2+"CreateLaunchTemplateVersion&LaunchTemplateId="+id+"&LaunchTemplateData."+template, http.StatusOK, "")
	expect(t, c, latest, http.StatusOK, "<versionNumber>2</versionNumber>")

	set := "&AutoScalingGroupName=pool&LaunchTemplate.LaunchTemplateId=" + id + "&VPCZoneIdentifier=subnet-0b&MinSize=0&MaxSize=9&DesiredCapacity="
	c.Exhaust(Pool{InstanceType: "m6i.large", Zone: "us-east-1b", Spot: true})
	expect(t, c, autoScaling+"CreateAutoScalingGroup"+set+"2", http.StatusOK, "")
	has := func(count int) []Instance {
		t.Helper()
		instances := c.Instances()
		if len(instances) != count {
			t.Fatalf("the group has %+v", instances)
		}
		return instances
	}
	has(0)
	c.Exhaust()
	first := has(2)[0]
	c.Terminate(first.ID)
	has(2)
	expect(t, c, autoScaling+"UpdateAutoScalingGroup"+set+"1", http.StatusOK, "")
	left := has(1)[0]
	expect(t, c, autoScaling+"DescribeAutoScalingGroups&AutoScalingGroupNames.member.1=pool", http.StatusOK, "<InstanceId>"+left.ID+"</InstanceId>")
	expect(t, c, autoScaling+"UpdateAutoScalingGroup"+set+"10", http.StatusBadRequest, "<Code>ValidationError</Code>")
	expect(t, c, autoScaling+"DeleteAutoScalingGroup&AutoScalingGroupName=pool", http.StatusOK, "")
	has(0)
}

func TestSecrets(t *testing.T) {
	c := start(t)
	ask := func(action string, request map[string]any) int {
		body, err := json.Marshal(request)
		if err != nil {
			t.Fatal(err)
		}
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+c.listener.Addr().String(), strings.NewReader(string(body)))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("X-Amz-Target", secretsTarget+action)
		status, _ := do(t, r)
		return status
	}
	secret := map[string]any{"Name": "a-0", "SecretBinary": []byte("packed")}
	if first, second := ask("CreateSecret", secret), ask("CreateSecret", secret); first != http.StatusOK || second != http.StatusBadRequest || c.Secrets() != 1 {
		t.Errorf("creating twice: %d, %d, %d secrets", first, second, c.Secrets())
	}
	one := map[string]any{"SecretId": "a-0"}
	if first, second := ask("DeleteSecret", one), ask("DeleteSecret", one); first != http.StatusOK || second != http.StatusBadRequest || c.Secrets() != 0 {
		t.Errorf("deleting twice: %d, %d, %d secrets", first, second, c.Secrets())
	}
}
