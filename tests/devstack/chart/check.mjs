// Checks resources of other makers' kinds. Input: lines of JSON. Output: a line for each that does not fit.
import { createInterface } from "node:readline";
import { ScaledObject } from "@kubernetes-models/keda/keda.sh/v1alpha1/ScaledObject";
import { PrometheusRule } from "@kubernetes-models/prometheus-operator/monitoring.coreos.com/v1/PrometheusRule";
import { ServiceMonitor } from "@kubernetes-models/prometheus-operator/monitoring.coreos.com/v1/ServiceMonitor";

const kinds = { ScaledObject, PrometheusRule, ServiceMonitor };
for await (const line of createInterface({ input: process.stdin })) {
  const resource = JSON.parse(line);
  try {
    new kinds[resource.kind](resource).validate();
  } catch (error) {
    console.log(`${resource.kind} ${resource.metadata?.name}: ${error.message}`);
  }
}
