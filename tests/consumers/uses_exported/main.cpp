// The model behind the package's function.
float score(float feature);

int main() {
  return score(1) == 3.5f ? 0 : 1;
}
