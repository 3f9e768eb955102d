// Reads custom resources as JSON from the standard input, and writes for each what its schema refuses.
//
// The schemas are compiled functions, and let unknown fields pass. But a function reads every field that it knows. So a
// field that was not read is unknown.
import { readFileSync } from "node:fs";

const KEDA = "keda/_schemas/ComGithubKedacoreKedaV2ApisKedaV1alpha1";
const PROMETHEUS = "prometheus-operator/_schemas/ComGithubPrometheusOperatorPrometheusOperatorPkgApisMonitoringV1";
const SCHEMAS = {
  ScaledObject: `${KEDA}ScaledObject`,
  ServiceMonitor: `${PROMETHEUS}ServiceMonitor`,
  PrometheusRule: `${PROMETHEUS}PrometheusRule`,
};

// A copy that takes each place out of `unread` when it is read.
function watched(value, path, unread) {
  if (value === null || typeof value !== "object") return value;
  const inner = Array.isArray(value) ? [] : {};
  for (const [key, one] of Object.entries(value)) {
    unread.add(`${path}.${key}`);
    inner[key] = watched(one, `${path}.${key}`, unread);
  }
  return new Proxy(inner, {
    get(target, key, self) {
      unread.delete(`${path}.${String(key)}`);
      return Reflect.get(target, key, self);
    },
  });
}

async function faults(resource) {
  // The packages offer the schemas only behind classes that copy what they check.
  const file = new URL(`node_modules/@kubernetes-models/${SCHEMAS[resource.kind]}.js`, import.meta.url);
  const { validate } = await import(file);
  const unread = new Set();
  if (validate(watched(resource, "", unread))) return [...unread].map((path) => `${path} is unknown`);
  return validate.errors.map((error) => `${error.instancePath} ${error.keyword} ${JSON.stringify(error.params)}`);
}

const resources = JSON.parse(readFileSync(0, "utf8"));
console.log(JSON.stringify(await Promise.all(resources.map(faults))));
