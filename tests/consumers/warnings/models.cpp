// Classes of all kinds: each is constructed, run, and touched wherever its header has code.
#include "affine.h"
#include "any_batch.h"
#include "caches.h"
#include "elements.h"
#include "even_batch.h"
#include "in_place.h"
#include "prepared.h"
#include "row_sums.h"
#include "words.h"
#ifdef HAS_SEVERAL_CPUS
#include "several.h"
#include "several_prepared.h"
#endif

#include <firn/owned.h>
#include <firn/tfcompile.h>
#include <firn/thread_pool.h>

bool shares_items();

namespace {

// Uses the members that every class has.
template <class Model> bool runs(Model& model) {
  const firn::ModelInfo& info = model.info();
  for (std::size_t i = 0; i < info.input_count; ++i)
    if (info.inputs[i].external || !model.bind_input(i, nullptr) || !model.input_data(i)) return false;
  const firn::ThreadPool pool(2);
  firn::Executor executor(pool.executor());
  return model.status() && model.run() && model.run(executor) && model.output_data(0) != nullptr;
}

// Elements of any type, read and written in each way that a view has.
template <class View> void touch(View view) {
  view(0, 0) = view(1, 2);
  static_cast<void>(view.size_bytes() + view.extent(0));
}
template <class T, std::size_t... dims> void touch_rows(firn::View<T, dims...> view) {
  for (T& element : view) element = T();
  view[0][1] = view(0, 2);
}

bool elements_run() {
  firn::Owned<demo::Elements> model;
  demo::Elements::Dims dims;
  dims.n = 2;
  if (!model->set_dims(dims) || !runs(*model)) return false;
  for (bool& flag : model->flag()) flag = true;
  touch(model->f32()), touch(model->f64()), touch(model->f16()), touch(model->bf16());
  touch(model->f8e4m3fn()), touch(model->f8e5m2());
  touch(model->i64()), touch(model->i8()), touch(model->u16()), touch(model->flag()), touch(model->i4()),
      touch(model->u4());
  touch_rows(model->f32()), touch_rows(model->u16()), touch_rows(model->f16());
  model->f16()(0, 0) = 1.5f;
  model->i4()(1, 2) = -8;
  return model->run() && model->y_i4()(1, 2) == -8 && firn::argmax(model->y_f16()) == 0 &&
         model->where().extent(1) == 6;
}

bool classes_run() {
  firn::Owned<demo::Affine> affine;
  float scores[2][3];
  affine->bind_scores(scores[0]);
  firn::Owned<demo::AnyBatch> any_batch;
  firn::Owned<demo::EvenBatch> even_batch;
  firn::Owned<demo::RowSums> row_sums;
  firn::Owned<demo::Caches> caches;
  firn::Owned<demo::Words> words;
  words->sentence()(0) = "The fox";
  caches->reset();
  firn::TfCompiled<demo::Caches> compiled;
  return runs(*affine) && runs(*any_batch) && any_batch->set_batch(3) && any_batch->run() &&
         runs(*even_batch) && !even_batch->set_dim(0, 3) && runs(*row_sums) && runs(*caches) &&
         runs(*words) && words->counts()(0) == 2 && words->words()(0, 1) == firn::Text("fox") &&
         compiled.Run();
}

bool prepared_run() {
  static demo::Prepared::Weights::Memory memory;
  firn::Owned<demo::Prepared> prepared(demo::Prepared::Weights::prepare(memory));
  static unsigned char none[1];
  firn::Owned<demo::InPlace> in_place(demo::InPlace::Weights::prepare(none));
  return runs(*prepared) && runs(*in_place);
}

#ifdef HAS_SEVERAL_CPUS
bool several_run() {
  firn::Owned<demo::Several> best, named(demo::Several::embedded(), "x86-64-v2");
  static demo::SeveralPrepared::Weights::Memory memory;
  firn::Owned<demo::SeveralPrepared> prepared(demo::SeveralPrepared::Weights::prepare(memory));
  return runs(*best) && runs(*named) && named->info().cpu[0] == 'x' && runs(*prepared);
}
#else
bool several_run() {
  return true;
}
#endif

} // namespace

int main() {
  return elements_run() && classes_run() && prepared_run() && several_run() && shares_items() ? 0 : 1;
}
